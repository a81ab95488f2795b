package lessor_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// A source is one Go file of the tree.
type source struct {
	path   string
	text   []byte
	pos    *token.FileSet
	syntax *ast.File
	nested bool // belongs to a nested module, whose imports are not checked
}

func (s source) folder() string { return path.Dir(s.path) }
func (s source) isTest() bool   { return strings.HasSuffix(s.path, "_test.go") }

// readTree parses every Go file below root, whatever its build tags, in the order of their paths. Like the go command,
// it skips testdata and names that begin with a dot or an underscore.
func readTree(t *testing.T, root fs.FS) []source {
	t.Helper()
	var tree []source
	var nested []string
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if entry.IsDir() {
			if name == "." {
				return nil
			}
			if base[0] == '.' || base[0] == '_' || base == "testdata" {
				return fs.SkipDir
			}
			if _, err := fs.Stat(root, path.Join(name, "go.mod")); err == nil {
				nested = append(nested, name+"/")
			}
			return nil
		}
		if path.Ext(name) != ".go" || base[0] == '.' || base[0] == '_' {
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		pos := token.NewFileSet()
		syntax, err := parser.ParseFile(pos, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		inside := slices.ContainsFunc(nested, func(dir string) bool { return strings.HasPrefix(name, dir) })
		tree = append(tree, source{path: name, text: text, pos: pos, syntax: syntax, nested: inside})
		return nil
	})
	if err != nil {
		t.Fatalf("read the tree: %v", err)
	}
	return tree
}

// check returns the problems of tree, one line each.
func check(tree []source, table map[string]layer) []string {
	var problems []string
	folders := map[string]bool{} // true: holds more than tests
	for _, s := range tree {
		more, seen := folders[s.folder()]
		folders[s.folder()] = more || !s.isTest()
		l, listed := table[s.folder()]
		switch {
		case s.nested:
		case listed:
			problems = append(problems, checkImports(s, l)...)
		case !seen:
			problems = append(problems, s.folder()+": not in the table of layers_test.go; say there what it may import")
		}
		if !seen {
			problems = append(problems, checkFolder(s.folder())...)
		}
		problems = append(problems, checkText(s)...)
		problems = append(problems, checkCalls(s, l.pure)...)
	}
	for _, folder := range slices.Sorted(maps.Keys(table)) {
		if !folders[folder] {
			problems = append(problems, folder+": in the table, but there is no such package")
		}
	}
	return problems
}

// unused returns what the table allows and no file imports; testLibs are for every test.
func unused(tree []source, table map[string]layer) []string {
	var problems []string
	for _, folder := range slices.Sorted(maps.Keys(table)) {
		for _, entry := range slices.Concat(table[folder].imports, table[folder].libs, table[folder].tests) {
			imported := func(s source) bool {
				return s.folder() == folder && slices.ContainsFunc(s.syntax.Imports, func(spec *ast.ImportSpec) bool {
					target := strings.Trim(spec.Path.Value, `"`)
					return target == path.Join(module, entry) || under(target, []string{entry})
				})
			}
			if !slices.Contains(testLibs, entry) && !slices.ContainsFunc(tree, imported) {
				problems = append(problems, fmt.Sprintf("%s: may import %s, and does not", folder, entry))
			}
		}
	}
	return problems
}

// checkImports compares the imports of one file with its layer.
func checkImports(s source, l layer) []string {
	var problems []string
	for _, spec := range s.syntax.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", s.path, err))
			continue
		}
		if !allowed(target, s, l) {
			problems = append(problems, fmt.Sprintf("%s: imports %q, which its layer does not allow", s.path, target))
		}
	}
	return problems
}

func allowed(target string, s source, l layer) bool {
	first, _, _ := strings.Cut(target, "/")
	switch {
	case under(target, []string{module}):
		folder := path.Clean("." + strings.TrimPrefix(target, module))
		own := s.isTest() && folder == s.folder()
		return own || slices.Contains(l.imports, folder) || s.isTest() && slices.Contains(l.tests, folder)
	case strings.Contains(first, ".") || target == "C":
		return under(target, l.libs) || s.isTest() && (under(target, testLibs) || under(target, l.tests))
	default:
		return !l.pure || s.isTest() || !under(target, impure)
	}
}

// under reports whether target is one of the paths or lies below one.
func under(target string, paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return target == p || strings.HasPrefix(target, p+"/") })
}

func checkFolder(folder string) []string {
	var problems []string
	for name := range strings.SplitSeq(folder, "/") {
		if slices.Contains(notFolders, name) {
			problems = append(problems, fmt.Sprintf("%s: %q says nothing about what is inside", folder, name))
		}
	}
	return problems
}

// checkText checks the number of lines of one file, their length, and that none is marked for later.
func checkText(s source) []string {
	var problems []string
	limit := maxLines
	if s.isTest() {
		limit = maxTestLines
	}
	n := 0
	for line := range bytes.Lines(s.text) {
		n++
		columns := utf8.RuneCount(bytes.TrimSuffix(line, []byte("\n"))) + (tabColumns-1)*bytes.Count(line, []byte("\t"))
		if columns > maxColumns && !ast.IsGenerated(s.syntax) {
			text := "%s:%d: %d columns, and %d is the limit"
			problems = append(problems, fmt.Sprintf(text, s.path, n, columns, maxColumns))
		}
		if mark := leftOver.Find(line); mark != nil {
			text := "%s:%d: left over: %s; do it now, or open an issue"
			problems = append(problems, fmt.Sprintf(text, s.path, n, mark))
		}
	}
	if n > limit && !ast.IsGenerated(s.syntax) {
		text := "%s: %d lines, and %d is the limit; it contains more than one thing"
		problems = append(problems, fmt.Sprintf(text, s.path, n, limit))
	}
	return problems
}

// checkCalls finds time.Sleep, and in pure layers every use of the clock, also if the import renames the package.
func checkCalls(s source, pure bool) []string {
	if s.isTest() || strings.HasPrefix(s.path, "internal/store/storetest/") { // tests, though not by name
		return nil
	}
	forbidden := []string{"Sleep"}
	if pure {
		forbidden = append(forbidden, "Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick")
	}
	var problems []string
	name := importName(s.syntax, "time")
	ast.Inspect(s.syntax, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == name && slices.Contains(forbidden, sel.Sel.Name) {
			line := s.pos.Position(sel.Pos()).Line
			problems = append(problems, fmt.Sprintf("%s:%d: time.%s is not for this layer", s.path, line, sel.Sel.Name))
		}
		return true
	})
	return problems
}

// importName returns the name under which file imports target, or "" if it does not import it.
func importName(file *ast.File, target string) string {
	for _, spec := range file.Imports {
		if spec.Path.Value != strconv.Quote(target) {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(target)
	}
	return ""
}
