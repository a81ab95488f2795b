// Module gives the project another module path:
//
//	go run -C tools ./module example.org/you/lessor    names it so in every tracked file
//	go run -C tools ./module lessor                    undoes it
//
// The path is in the first line of go.mod. Other files name it in imports, in go.mod lines, and as `path/folder` or
// `path@v1`; "lessor" anywhere else is the name of the program and stays.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const root = ".."

func main() {
	if err := rename(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "module:", err)
		os.Exit(1)
	}
}

// importable is a path that the go command can download. "lessor" is the name of the project while it has none.
var importable = regexp.MustCompile(`^(lessor|[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+)$`)

func rename(args []string) error {
	if len(args) != 1 || !importable.MatchString(args[0]) {
		return errors.New("give a module path, HOST/NAME: make module path=example.org/you/lessor")
	}
	list := exec.CommandContext(context.Background(), "git", "ls-files", "-z")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("list the files of the repository: %w", err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	old := regexp.MustCompile(`(?m)^module (\S+)$`).FindSubmatch(mod)
	if old == nil {
		return errors.New("go.mod has no module line")
	}
	files := strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	places := places(string(old[1]), files)
	for _, file := range files {
		if err := edit(filepath.Join(root, file), places, args[0]); err != nil {
			return err
		}
	}
	return nil
}

// places are the texts in which the path of the module is meant, between what stands before and behind it.
func places(module string, files []string) []*regexp.Regexp {
	var folders []string
	for _, file := range files {
		folder, _, below := strings.Cut(file, "/")
		if folder = regexp.QuoteMeta(folder); below && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	module = regexp.QuoteMeta(module)
	return []*regexp.Regexp{
		regexp.MustCompile(`(?m)^(module )` + module + `()$`),
		regexp.MustCompile(`(?m)^(require |replace |\t)` + module + `( v[0-9]| =>)`),
		regexp.MustCompile(`(?m)^(\s*(?:import )?(?:[\w.]+ )?")` + module + `(")$`),
		regexp.MustCompile("([\\s\"`])" + module + `(/(?:` + strings.Join(folders, "|") + `)\b|@v[0-9])`),
		regexp.MustCompile(`(module-path: |prefix\()` + module + `\b()`), // .golangci.yml
	}
}

// edit writes to in all places of a file.
func edit(name string, places []*regexp.Regexp, to string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	renamed := string(text)
	for _, place := range places {
		renamed = place.ReplaceAllString(renamed, "${1}"+to+"${2}")
	}
	if renamed == string(text) {
		return nil
	}
	return os.WriteFile(name, []byte(renamed), 0o600) // the mode of an existing file stays
}
