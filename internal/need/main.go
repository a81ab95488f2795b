// Command need checks that the programs which tests call are installed. If one is missing, it installs the Debian
// package of the same name, if it can. PROGRAM=PACKAGE names a program whose package has another name.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func main() {
	var missing []string
	for _, arg := range os.Args[1:] {
		program, pkg, ok := strings.Cut(arg, "=")
		if !ok {
			pkg = program
		}
		if !isInstalled(program) {
			missing = append(missing, pkg)
		}
	}
	if len(missing) == 0 {
		return
	}
	if err := install(missing); err != nil {
		fmt.Fprintf(os.Stderr, "need: %v\ntests need %s; install them (Debian: apt-get install %[2]s) and try again\n",
			err, strings.Join(missing, " "))
		os.Exit(1)
	}
}

// isInstalled also searches /usr/sbin, where Debian installs servers and which may not be on PATH.
func isInstalled(program string) bool {
	_, err := exec.LookPath(program)
	if err != nil {
		_, err = exec.LookPath("/usr/sbin/" + program)
	}
	return err == nil
}

func install(packages []string) error {
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("only root can install packages")
	}
	fmt.Fprintln(os.Stderr, "need: installing", strings.Join(packages, " "), "with apt-get, once")
	for _, args := range [][]string{
		{"update", "-q"}, append([]string{"install", "-q", "-y", "--no-install-recommends"}, packages...),
	} {
		cmd := exec.CommandContext(context.Background(), apt, args...)
		// With RUNLEVEL=1 a package starts no server, which would occupy its port.
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, out)
		}
	}
	return nil
}
