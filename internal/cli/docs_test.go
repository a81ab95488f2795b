package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestDocsNameEveryCommandAndFlag holds docs/cli.md and the command table to each other: a section a command, a row a
// flag, and nothing that does not exist.
func TestDocsNameEveryCommandAndFlag(t *testing.T) {
	raw, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{} // by the command of their heading
	for part := range strings.SplitSeq(string(raw), "\n#") {
		heading, body, _ := strings.Cut(part, "\n")
		if m := regexp.MustCompile("`(lessor[^`]*)`").FindStringSubmatch(heading); m != nil {
			sections[m[1]] = body
		}
	}
	reach := map[string]bool{}
	(&app{}).reaching(&cobra.Command{}).PersistentFlags().VisitAll(func(f *pflag.Flag) { reach[f.Name] = true })
	for name := range reach {
		if !strings.Contains(string(raw), "\n| `--"+name+"` ") {
			t.Errorf("--%s is in no row", name)
		}
	}
	walk((&app{}).rootCommand(), func(cmd *cobra.Command) {
		body, ok := sections[cmd.CommandPath()]
		if !ok {
			t.Errorf("%s has no section", cmd.CommandPath())
			return
		}
		delete(sections, cmd.CommandPath())
		inRows := map[string]bool{}
		for _, m := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)").FindAllStringSubmatch(body, -1) {
			inRows[m[1]] = true
		}
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !inRows[f.Name] {
				t.Errorf("%s --%s is in no row of its section", cmd.CommandPath(), f.Name)
			}
			delete(inRows, f.Name)
		})
		for name := range inRows {
			t.Errorf("%s has no flag --%s, but docs/cli.md says so", cmd.CommandPath(), name)
		}
	})
	for path := range sections {
		t.Errorf("there is no command %s, but docs/cli.md says so", path)
	}
}

// walk visits a command and those below it; what cobra adds by itself below completion is of one kind.
func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	if cmd.HasParent() {
		visit(cmd)
	}
	if cmd.Name() == "completion" {
		return
	}
	for _, c := range cmd.Commands() {
		if !c.Hidden && c.Name() != "help" {
			walk(c, visit)
		}
	}
}
