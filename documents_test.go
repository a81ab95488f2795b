package lessor_test

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A document is what people read to learn about the code: a Markdown file, or the comment of a package.
type document struct{ file, text string }

func documents(t *testing.T) (docs []document, tests string) {
	t.Helper()
	var code strings.Builder
	for _, s := range readTree(t, os.DirFS(".")) {
		if s.isTest() {
			code.Write(s.text)
		} else if s.syntax.Doc != nil {
			docs = append(docs, document{s.path, s.syntax.Doc.Text()})
		}
	}
	for _, file := range slices.Concat(glob(t, "*.md"), glob(t, "*/*.md"), glob(t, "*/*/*.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, document{file, string(text)})
	}
	return docs, code.String()
}

// TestDocumentsNameTestsThatExist looks for every test that a document names. A name that ends with … is the beginning
// of one.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	docs, tests := documents(t)
	names := regexp.MustCompile(`\b((?:Test|Benchmark|Fuzz)[A-Z]\w+)(…?)`)
	for _, d := range docs {
		for _, m := range names.FindAllStringSubmatch(d.text, -1) {
			name := "func " + m[1]
			if m[2] == "" {
				name += "("
			}
			if !strings.Contains(tests, name) {
				t.Errorf("%s: there is no %s", d.file, m[1])
			}
		}
	}
}

// TestDocumentedCommandsRunTests looks for the tests of each `go test PACKAGE -run NAMES` in that package: go test runs
// nothing, and succeeds, if there are none.
func TestDocumentedCommandsRunTests(t *testing.T) {
	docs, _ := documents(t)
	tests := map[string]string{}
	for _, s := range readTree(t, os.DirFS(".")) {
		if s.isTest() {
			tests[path.Dir(s.path)] += string(s.text)
		}
	}
	command := regexp.MustCompile(`go test \./([\w/]+) -run '?([\w|\\]+)`)
	for _, d := range docs {
		for _, m := range command.FindAllStringSubmatch(d.text, -1) {
			for name := range strings.SplitSeq(strings.ReplaceAll(m[2], `\|`, "|"), "|") {
				if !regexp.MustCompile(`(?m)^func \w*` + name).MatchString(tests[m[1]]) {
					t.Errorf("%s: there is no %s in %s", d.file, name, m[1])
				}
			}
		}
	}
}

// TestEveryFuzzTestIsListed compares the table of parsers in docs/guarantees.md with the fuzz tests that there are.
func TestEveryFuzzTestIsListed(t *testing.T) {
	text, err := os.ReadFile("docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed, there []string
	for _, m := range regexp.MustCompile("\\| `([\\w./]+)` (Fuzz\\w+) \\|").FindAllStringSubmatch(string(text), -1) {
		listed = append(listed, m[1]+" "+m[2])
	}
	for _, s := range readTree(t, os.DirFS(".")) {
		for _, m := range regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`).FindAllSubmatch(s.text, -1) {
			there = append(there, path.Dir(s.path)+" "+string(m[1]))
		}
	}
	slices.Sort(listed)
	slices.Sort(there)
	if !slices.Equal(listed, there) {
		t.Errorf("docs/guarantees.md, \"Bytes from outside\", lists\n%s\nand there are\n%s",
			strings.Join(listed, "\n"), strings.Join(there, "\n"))
	}
}

var (
	goFile  = regexp.MustCompile(`[\w/*.-]*\w\.(?:go|md)\b`)
	folders = regexp.MustCompile(`[\w./*-]+/[\w.*-]+`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```")
	link    = regexp.MustCompile(`\]\(([^)\s]*)\)`)
	quoted  = regexp.MustCompile("`[^`\n]+`")
	target  = regexp.MustCompile(`\bmake ([a-z]+)`)
)

// TestDocumentsNameFilesThatExist looks for every path that a document names: Go files and documents, and other paths
// that begin with a folder of ours. A path begins at the root, at internal, at internal/scheduler, of which
// ARCHITECTURE.md has most to say, or at the document's own folder.
func TestDocumentsNameFilesThatExist(t *testing.T) {
	docs, _ := documents(t)
	for _, d := range docs {
		ours := func(name string) bool {
			return slices.ContainsFunc([]string{".", "internal", "internal/scheduler", path.Dir(d.file)},
				func(place string) bool { return exists(path.Join(place, name)) })
		}
		text := d.text
		if path.Ext(d.file) == ".md" {
			text = strings.Join(quoted.FindAllString(text, -1), "\n")
			for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(d.text, ""), -1) {
				checkLink(t, d, m[1])
			}
		}
		names := goFile.FindAllString(text, -1)
		for _, name := range folders.FindAllString(text, -1) {
			first, _, _ := strings.Cut(name, "/")
			if !slices.Contains([]string{"", ".", "..", "bin"}, first) && ours(first) { // bin is what make writes
				names = append(names, name)
			}
		}
		for _, name := range names {
			if !ours(name) {
				t.Errorf("%s: there is no %s", d.file, name)
			}
		}
	}
}

// checkLink checks that a link leads to a file, and to one of its headings.
func checkLink(t *testing.T, d document, to string) {
	t.Helper()
	if strings.Contains(to, "://") {
		return
	}
	file, heading, _ := strings.Cut(to, "#")
	if file = path.Join(path.Dir(d.file), file); strings.HasPrefix(to, "#") {
		file = d.file
	}
	text, err := os.ReadFile(file)
	if err != nil && !exists(file) {
		t.Errorf("%s: there is no %s", d.file, to)
	}
	if heading == "" {
		return
	}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		slug := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		if strings.ReplaceAll(slug, " ", "-") == heading {
			return
		}
	}
	t.Errorf("%s: %s has no heading %q", d.file, file, heading)
}

func exists(pattern string) bool {
	files, err := filepath.Glob(pattern)
	return err == nil && len(files) > 0
}

// TestDocumentsNameTargetsThatExist looks for every target of make that a document names.
func TestDocumentsNameTargetsThatExist(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	docs, _ := documents(t)
	for _, d := range docs {
		for _, m := range target.FindAllStringSubmatch(strings.Join(quoted.FindAllString(d.text, -1), "\n"), -1) {
			if !strings.Contains(string(makefile), "\n"+m[1]+":") {
				t.Errorf("%s: there is no make %s", d.file, m[1])
			}
		}
	}
}

// TestPublicPackagesHaveExamples looks for an example in every package that others can import.
func TestPublicPackagesHaveExamples(t *testing.T) {
	has := map[string]bool{}
	for _, s := range readTree(t, os.DirFS(".")) {
		public := s.syntax.Name.Name != "main" && !strings.Contains("/"+s.path, "/internal/") &&
			!slices.Contains([]string{"chaos", "examples"}, s.folder())
		if public {
			has[s.folder()] = has[s.folder()] || s.isTest() && bytes.Contains(s.text, []byte("\nfunc Example"))
		}
	}
	if len(has) < 10 {
		t.Errorf("only %d public packages were found", len(has))
	}
	for folder, example := range has {
		if !example {
			t.Errorf("%s has no example", folder)
		}
	}
}

// TestGoDirectives checks that every module names the first release of a Go version, so that every release builds it.
// Without the .0 go mod tidy would put it back, because dependencies have it.
func TestGoDirectives(t *testing.T) {
	files := slices.Concat(glob(t, "go.mod"), glob(t, "*/go.mod"), glob(t, "*/*/go.mod"))
	if len(files) < 5 {
		t.Errorf("found only %q", files)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`(?m)^go 1\.\d+(\.0)?$`).Match(text) || bytes.Contains(text, []byte("\ntoolchain ")) {
			t.Errorf("%s names a patch release of Go, or a toolchain", file)
		}
	}
}

// TestNestedModulesRequireTheNewestRelease compares them with CHANGELOG.md: go get fetches what they require.
func TestNestedModulesRequireTheNewestRelease(t *testing.T) {
	changes, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	newest := regexp.MustCompile(`(?m)^## \[(\d\S*)\]`).FindSubmatch(changes)
	for _, file := range append(glob(t, "mailbox/*/go.mod"), "bench/go.mod") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if want := "\t" + module + " v" + string(newest[1]) + "\n"; !strings.Contains(string(text), want) {
			t.Errorf("%s does not require %q", file, strings.TrimSpace(want))
		}
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	return files
}
