package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestDocsNameEveryCommandAndFlag compares docs/cli.md with the command table: each command has a section, each flag a
// row, and nothing else is named.
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
			if missing := someButNot(body, f); len(missing) > 0 {
				t.Errorf("%s --%s: its row names some of its values, but not %q", cmd.CommandPath(), f.Name, missing)
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

// someButNot returns the values of a flag that its row in a section leaves out although it names others.
func someButNot(section string, f *pflag.Flag) (missing []string) {
	c, ok := f.Value.(choice)
	if !ok {
		return nil
	}
	row := regexp.MustCompile("(?m)^\\| `--" + f.Name + "`.*").FindString(section)
	for _, word := range c.words {
		if !strings.Contains(row, "`"+word+"`") {
			missing = append(missing, word)
		}
	}
	if len(missing) >= len(c.words)-1 {
		return nil // it names none, or only the default
	}
	return missing
}

var (
	inlineCommand = regexp.MustCompile("`(?:bin/)?(lessor [a-z][^`]*)`")
	blockCommand  = regexp.MustCompile(`(?m)^\s*(?:[A-Z_]+=\S+ )?(?:bin/)?(lessor [a-z].*)$`)
	flagWord      = regexp.MustCompile(`^--[a-z][a-z-]*`)
)

// TestDocumentsNameCommandsThatExist looks for every command and flag that a document or a package comment shows.
func TestDocumentsNameCommandsThatExist(t *testing.T) {
	seen := 0
	for _, glob := range []string{"*.md", "docs/*.md", "docs/decisions/*.md", "*.go", "*/*.go", "*/*/*.go"} {
		files, err := filepath.Glob("../../" + glob)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", glob, err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text := string(raw)
			if filepath.Ext(file) == ".go" {
				text, _, _ = strings.Cut("\n"+text, "\npackage ")
			}
			for _, m := range slices.Concat(inlineCommand.FindAllStringSubmatch(text, -1),
				blockCommand.FindAllStringSubmatch(text, -1)) {
				seen++
				if problem := unknown(m[1]); problem != "" {
					t.Errorf("%s: %s: %s", strings.TrimPrefix(file, "../../"), m[1], problem)
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d commands were found", seen)
	}
}

// unknown says which word of a command line, up to a comment, an operator or --, does not exist.
func unknown(line string) string {
	words := strings.Fields(line)[1:]
	for i, word := range words {
		if strings.ContainsAny(word, "#|&;") || word == "--" {
			words = words[:i]
			break
		}
	}
	cmd, rest, err := (&app{}).rootCommand().Find(words)
	below := cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-")
	if err != nil || !cmd.HasParent() || below {
		return "there is no such command"
	}
	for _, word := range rest {
		name := strings.TrimPrefix(flagWord.FindString(word), "--")
		if name != "" && name != "help" && cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil {
			return "it has no flag --" + name
		}
	}
	return ""
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

var twoDefaults = regexp.MustCompile(`\(default: [^)]*\) \(default [^)]*\)`)

func TestHelpFitsATerminal(t *testing.T) {
	root := (&app{}).rootCommand()
	help := func(cmd *cobra.Command) {
		var out strings.Builder
		cmd.SetOut(&out)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "(default 0s)") || strings.Contains(out.String(), "(default 0B)") {
			t.Errorf("%s --help shows the default of a flag that means nothing when it is left out", cmd.CommandPath())
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("%s --help has a line of %d characters:\n%s", cmd.CommandPath(), n, line)
			}
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		if twice := twoDefaults.FindString(text); twice != "" {
			t.Errorf("%s --help has two defaults of a flag: %s", cmd.CommandPath(), twice)
		}
	}
	help(root)
	walk(root, help)
}
