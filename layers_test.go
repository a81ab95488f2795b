package lessor_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// module is the path in go.mod; "." in the table below is its root package, the words.
const module = "lessor"

// A layer says what one package may import. The standard library is free to all but pure layers.
type layer struct {
	imports []string // packages of this module, by folder
	libs    []string // modules of others, by path prefix
	tests   []string // what its _test.go files may import besides, from either side
	pure    bool     // decides from its arguments alone: no I/O, no clock, no chance
}

// The architecture: words ← rules ← lanes ← fold ← scheduler ← stores and transport ← node ← programs. Each line may import
// what stands above it and is named in it, nothing else. To add a package, add its line in the same commit, and say in
// the package comment what it is for; to add an arrow, first ask whether the thing is not in the wrong layer.
var layers = map[string]layer{
	// The words, and every decision.
	".":              {pure: true},
	"internal/cron":  {pure: true, imports: []string{"."}},
	"internal/rules": {pure: true, imports: []string{".", "internal/cron"}},
	"internal/lanes": {pure: true, imports: []string{".", "internal/rules"}},
	"internal/fold":  {pure: true, imports: []string{".", "internal/rules", "internal/lanes"}},

	// One transaction an operation; declares the seam that stores implement.
	"internal/batch": {},
	"internal/scheduler": {
		imports: []string{".", "internal/rules", "internal/lanes", "internal/fold", "internal/batch", "internal/schema"},
		libs:    []string{"github.com/google/uuid"},
		tests:   []string{"internal/store/sqlite", "internal/store/postgres", "internal/pgtest", "github.com/jackc/pgx/v5"},
	},

	// Stores load and save. Only here is there a database driver.
	"internal/store/row": {pure: true, imports: []string{".", "internal/rules", "internal/scheduler"}},
	"internal/store/sqlite": {
		imports: []string{".", "internal/rules", "internal/scheduler", "internal/store/row"},
		libs: []string{
			"modernc.org/sqlite", "modernc.org/libc", "zombiezen.com/go/sqlite",
			"github.com/pressly/goose/v3", "github.com/google/renameio/v2",
		},
		tests: []string{"internal/store/storetest"},
	},
	"internal/store/postgres/wire": { // statements, connections and pipelines; no jobs
		imports: []string{"."},
		libs:    []string{"github.com/jackc/pgx/v5"},
		tests:   []string{"internal/pgtest"},
	},
	"internal/store/postgres": {
		imports: []string{
			".", "internal/rules", "internal/scheduler", "internal/store/row", "internal/store/postgres/wire",
		},
		libs:  []string{"github.com/jackc/pgx/v5", "github.com/pressly/goose/v3"},
		tests: []string{"internal/store/storetest", "internal/pgtest"},
	},
	"internal/pgtest":         {libs: []string{"github.com/jackc/pgx/v5"}}, // a throwaway server, for tests only
	"internal/pgtest/install": {imports: []string{"internal/pgtest"}},
	"internal/need":           {}, // programs that tests call
	"internal/store/storetest": {
		imports: []string{".", "internal/rules", "internal/scheduler"},
		libs:    testLibs,
	},

	// Neighbours of the core: each knows the words and one thing of the outside.
	"internal/token": {
		imports: []string{".", "internal/rules", "internal/scheduler"},
		libs:    []string{"github.com/google/uuid"},
	},
	"internal/telemetry": {
		imports: []string{".", "internal/scheduler"},
		libs:    []string{"github.com/prometheus/client_golang", "go.opentelemetry.io/otel"},
		tests:   []string{"internal/rules", "github.com/goccy/go-yaml"},
	},
	"internal/alert":    {},
	"internal/indent":   {pure: true},
	"internal/quota":    {imports: []string{"."}},
	"internal/manifest": {libs: []string{"github.com/goccy/go-yaml"}, tests: []string{"."}},
	"internal/schema":   {libs: []string{"github.com/santhosh-tekuri/jsonschema/v6"}},
	"internal/host": {
		imports: []string{"."},
		libs:    []string{"github.com/shirou/gopsutil/v4"},
	},
	"internal/config": {
		imports: []string{"."},
		libs:    []string{"github.com/goccy/go-yaml"},
	},

	// Transport: decode, call, encode. Rules only to check what was sent.
	"internal/httpapi": {
		imports: []string{
			".", "internal/rules", "internal/scheduler", "internal/token", "internal/telemetry", "internal/recovery", "internal/quota",
		},
		libs: []string{
			"github.com/danielgtaylor/huma/v2", "github.com/swaggest", "github.com/go-json-experiment/json",
			"github.com/prometheus/client_golang",
		},
		tests: []string{"internal/store/sqlite", "internal/sentinel", "github.com/getkin/kin-openapi"},
	},

	// What lies in a workspace: the shim writes it, the monitor reads it.
	"internal/sentinel": {imports: []string{"."}, libs: []string{"github.com/google/renameio/v2", "golang.org/x/sys"}},

	// Judges what lies in a workspace, and asks the scheduler to act on it.
	"internal/recovery": {
		imports: []string{".", "internal/rules", "internal/scheduler", "internal/sentinel"},
		tests:   []string{"internal/store/sqlite", "internal/store/postgres", "internal/pgtest", "github.com/jackc/pgx/v5"},
	},

	"internal/dashboard": {
		imports: []string{
			".", "internal/rules", "internal/scheduler", "internal/token", "internal/recovery", "internal/httpapi", "internal/indent",
			"internal/quota",
		},
		tests: []string{
			"internal/store/sqlite", "internal/telemetry", "internal/sentinel", "github.com/chromedp/chromedp", "github.com/chromedp/cdproto",
		},
	},

	// The other side of HTTP: it shares the words with the server, and no code.
	"client": {imports: []string{"."}},
	"worker": {
		imports: []string{".", "client"},
		libs:    []string{"go.opentelemetry.io/otel"},
		tests:   []string{"lessortest", "node", "worker/mailboxtest"},
	},

	"internal/executor": {imports: []string{".", "client", "internal/sentinel"}, tests: []string{"node"}},

	// Agents: a model and its tools as the work of a message.
	"worker/mailboxtest": {imports: []string{"worker"}, libs: testLibs},
	"agent":              {imports: []string{"worker"}, libs: []string{"github.com/prometheus/client_golang"}, tests: []string{"lessortest"}},
	"agent/openai":       {imports: []string{"agent"}},

	// The wiring.
	"node": {
		imports: []string{
			".", "internal/rules", "internal/lanes", "internal/batch", "internal/scheduler", "internal/store/sqlite",
			"internal/store/postgres", "internal/token", "internal/telemetry", "internal/host", "internal/config", "internal/httpapi", "internal/alert",
			"internal/recovery", "internal/sentinel", "internal/dashboard",
		},
		libs:  []string{"github.com/google/renameio/v2"},
		tests: []string{"client", "worker", "go.opentelemetry.io", "google.golang.org/protobuf", "internal/pgtest"},
	},

	// The server for the tests of others, and what such others look like.
	"lessortest":       {imports: []string{".", "client", "node", "worker"}},
	"examples":         {tests: []string{".", "client", "node", "worker"}},
	"examples/minimal": {imports: []string{"client", "worker"}},
	"examples/drain":   {imports: []string{"client", "worker"}},
	"examples/mailbox": {imports: []string{"client", "worker"}},
	"examples/agent":   {imports: []string{"agent", "agent/openai", "client", "worker"}},

	// The programs.
	"internal/top":  {imports: []string{".", "client"}, libs: []string{"charm.land"}},
	"internal/demo": {imports: []string{".", "client"}},
	"internal/cli": {
		imports: []string{
			".", "client", "node", "internal/config", "internal/demo", "internal/manifest", "internal/store/sqlite", "internal/executor", "internal/sentinel", "internal/top",
			"internal/indent",
		},
		libs:  []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "charm.land/bubbletea/v2", "github.com/charmbracelet/x/term"},
		tests: []string{"golang.org/x/sys/unix"}, // a pseudo-terminal
	},
	"cmd/lessor": {imports: []string{"internal/cli"}},

	// The proofs against real processes.
	"chaos": {tests: []string{".", "client", "internal/pgtest"}},
}

// testLibs may be imported by every test: comparison, properties, leaks, scripts. No assertion library.
var testLibs = []string{
	"github.com/google/go-cmp", "pgregory.net/rapid", "go.uber.org/goleak", "github.com/rogpeppe/go-internal",
}

// impure lists the standard packages, with all below them, that bring in I/O, a clock of their own, or chance.
var impure = []string{"crypto/rand", "database", "log", "math/rand", "net", "os", "syscall"}

// notFolders are names that say nothing about what is inside.
var notFolders = []string{
	"base", "common", "core", "handler", "handlers", "helper", "helpers", "manager", "misc", "model", "models", "pkg",
	"service", "services", "shared", "types", "util", "utils",
}

// Lines a file may have. Generated files are as long as they are.
const (
	maxLines     = 300
	maxTestLines = 500
)

// leftOver is written in two halves so that it does not find itself.
var leftOver = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`)

func TestLayers(t *testing.T) {
	for _, problem := range check(readTree(t, os.DirFS(".")), layers) {
		t.Error(problem)
	}
}

// TestLayersAreGuarded breaks each rule once, so that none of them can pass by looking at nothing.
func TestLayersAreGuarded(t *testing.T) {
	table := map[string]layer{
		".":      {pure: true},
		"store":  {imports: []string{"."}, libs: []string{"example.org/db/v2"}, tests: []string{"client"}},
		"client": {imports: []string{"."}},
	}
	whole := map[string]string{
		"a.go":            "package lessor\nimport \"time\"\n",
		"client/c.go":     "package client\nimport (\"net/http\"; \"lessor\")\n",
		"store/s.go":      "package store\nimport (\"lessor\"; \"example.org/db/v2/driver\")\n",
		"store/s_test.go": "package store\nimport (\"time\"; \"lessor/client\")\nfunc f() { time.Sleep(1) }\n",
		"bench/go.mod":    "module lessor/bench\n",
		"bench/main.go":   "package main\nimport \"example.org/peer\"\n",
	}
	long := strings.Repeat("\n", maxTestLines)
	for _, c := range []struct{ name, file, text, want string }{
		{"nothing wrong", "", "", ""},
		{"package not listed", "extra/e.go", "package extra\n", "extra: not in the table"},
		{"package gone", "client/c.go", "", "client: in the table, but there is no such package"},
		{"package gone but for its test", "store/s.go", "", "store: in the table, but there is no such package"},
		{"arrow not listed", "client/c.go", "package client\nimport \"lessor/store\"\n", `client/c.go: imports "lessor/store"`},
		{"words import a package", "a.go", "package lessor\nimport \"lessor/client\"\n", `a.go: imports "lessor/client"`},
		{"words import a library", "a.go", "package lessor\nimport \"example.org/db/v2\"\n", `a.go: imports "example.org/db/v2"`},
		{"words reach outside", "a.go", "package lessor\nimport \"net/http\"\n", `a.go: imports "net/http"`},
		{"words read a clock", "a.go", "package lessor\nimport t \"time\"\nvar n = t.Now()\n", "a.go:3: time.Now"},
		{"library not listed", "client/c.go", "package client\nimport \"example.org/db/v2\"\n", `client/c.go: imports "example.org/db/v2"`},
		{"prefix is not a path", "store/s.go", "package store\nimport \"example.org/db/v20\"\n", `store/s.go: imports "example.org/db/v20"`},
		{"cgo", "store/s.go", "package store\nimport \"C\"\n", `store/s.go: imports "C"`},
		{"test's import in the package", "store/s.go", "package store\nimport \"lessor/client\"\n", `store/s.go: imports "lessor/client"`},
		{"folder that says nothing", "bench/util/x/x.go", "package x\n", `bench/util/x: "util" says nothing`},
		{"long file", "store/s.go", "package store\n" + long[:maxLines], "store/s.go: 301 lines"},
		{"long test", "store/s_test.go", "package store\n" + long, "store/s_test.go: 501 lines"},
		{"long test by one less", "store/s_test.go", "package store\n" + long[1:], ""},
		{"long generated file", "store/s.go", "// Code generated by hand. DO NOT EDIT.\n\npackage store\n" + long, ""},
		{"sleep", "store/s.go", "package store\nimport \"time\"\nfunc f() { time.Sleep(1) }\n", "store/s.go:3: time.Sleep"},
		{"sleep in a nested module", "bench/main.go", "package main\nimport \"time\"\nfunc f() { time.Sleep(1) }\n", "bench/main.go:3: time.Sleep"},
		{"left-over", "store/s.go", "package store\n\n// TO" + "DO: more\n", "store/s.go:3: left over"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := fstest.MapFS{}
			for file, text := range whole {
				tree[file] = &fstest.MapFile{Data: []byte(text)}
			}
			if c.text != "" {
				tree[c.file] = &fstest.MapFile{Data: []byte(c.text)}
			} else {
				delete(tree, c.file)
			}
			got := check(readTree(t, tree), table)
			if c.want == "" {
				if len(got) > 0 {
					t.Fatalf("problems where there are none: %q", got)
				}
				return
			}
			if len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
				t.Fatalf("got %q, want one problem that begins with %q", got, c.want)
			}
		})
	}
}

// A source is one Go file of the tree.
type source struct {
	path   string
	text   []byte
	pos    *token.FileSet
	syntax *ast.File
	nested bool // belongs to a module of its own, whose imports are its own affair
}

func (s source) folder() string { return path.Dir(s.path) }
func (s source) isTest() bool   { return strings.HasSuffix(s.path, "_test.go") }

// readTree parses every Go file below root, whatever its build tags, in the order of their paths. Like the go command
// it passes over testdata and names that begin with a dot or an underscore.
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

// check returns what is wrong with tree, one line a problem.
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

// checkImports holds the imports of one file against its layer.
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
	case first == module:
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

// checkText looks at the lines of one file: how many there are, and whether one was left for later.
func checkText(s source) []string {
	var problems []string
	limit := maxLines
	if s.isTest() {
		limit = maxTestLines
	}
	n := 0
	for line := range bytes.Lines(s.text) {
		n++
		if mark := leftOver.Find(line); mark != nil {
			problems = append(problems, fmt.Sprintf("%s:%d: left over: %s; do it now, or open an issue", s.path, n, mark))
		}
	}
	if n > limit && !ast.IsGenerated(s.syntax) {
		problems = append(problems, fmt.Sprintf("%s: %d lines, and %d is the limit; it holds more than one thing", s.path, n, limit))
	}
	return problems
}

// checkCalls finds time.Sleep, and in pure layers every look at the clock, also under another name of the package.
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

// importName returns what file calls the package at target, or "" if it does not import it.
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
