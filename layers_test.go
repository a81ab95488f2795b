package lessor_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// module is the path in go.mod; "." in the table below is its root package, the words.
var module = func() string {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		panic(err)
	}
	line, _, _ := strings.Cut(string(mod), "\n")
	return strings.TrimPrefix(line, "module ")
}()

// A layer states what one package may import. All but pure layers may import any standard package.
type layer struct {
	imports []string // packages of this module, by folder
	libs    []string // modules of others, by path prefix
	tests   []string // what its _test.go files may import in addition
	pure    bool     // depends only on its arguments: no I/O, no clock, no random numbers
}

// The architecture: words ← rules ← lanes ← fold ← scheduler ← stores and transport ← node ← programs. Each line may
// import what stands above it and is named in it, nothing else. To add a package, add its line in the same commit, and
// say in the package comment what it is for; to add an arrow, first ask whether the thing is not in the wrong layer.
var layers = map[string]layer{
	// The words, and every decision.
	".":              {pure: true},
	"internal/cron":  {pure: true, imports: []string{"."}},
	"internal/rules": {pure: true, imports: []string{".", "internal/cron"}},
	"internal/lanes": {pure: true, imports: []string{".", "internal/rules"}},
	"internal/fold":  {pure: true, imports: []string{".", "internal/rules", "internal/lanes"}},

	// One transaction an operation; declares the seam that stores implement.
	"internal/batch": {},
	"internal/pause": {},
	"internal/fault": {imports: []string{"internal/pause"}}, // panics that end no process
	"internal/scheduler": {
		imports: []string{
			".", "internal/rules", "internal/lanes", "internal/fold", "internal/batch", "internal/fault",
			"internal/schema",
		},
		libs: []string{"github.com/google/uuid"},
		tests: []string{
			"internal/store/sqlite", "internal/store/postgres", "internal/store/memory", "internal/pgtest",
			"github.com/jackc/pgx/v5",
		},
	},

	// Stores load and save. Only here is there a database driver.
	"internal/store/row": {pure: true, imports: []string{".", "internal/rules", "internal/scheduler"}},
	"internal/store":     {imports: []string{".", "internal/rules", "internal/scheduler"}}, // what both databases need
	"internal/store/sqlite": {
		imports: []string{".", "internal/rules", "internal/scheduler", "internal/store", "internal/store/row"},
		libs: []string{
			"modernc.org/sqlite", "modernc.org/libc", "zombiezen.com/go/sqlite",
			"github.com/pressly/goose/v3",
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
			".", "internal/rules", "internal/scheduler", "internal/store", "internal/store/row",
			"internal/store/postgres/wire", "internal/pause",
		},
		libs:  []string{"github.com/jackc/pgx/v5", "github.com/pressly/goose/v3"},
		tests: []string{"internal/store/storetest", "internal/pgtest"},
	},
	"internal/store/memory": { // for the simulator
		imports: []string{".", "internal/rules", "internal/scheduler"},
		tests:   []string{"internal/store/storetest"},
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
		imports: []string{".", "internal/fault", "internal/scheduler"},
		libs:    []string{"github.com/prometheus/client_golang", "go.opentelemetry.io/otel"},
		tests:   []string{"internal/rules", "github.com/goccy/go-yaml"},
	},
	"internal/alert":         {},
	"internal/indent":        {pure: true},
	"internal/plainjson":     {pure: true},
	"internal/scan":          {pure: true},
	"internal/scan/scantest": {libs: testLibs}, // for tests only
	"internal/quota":         {imports: []string{"."}},
	"internal/manifest":      {libs: []string{"github.com/goccy/go-yaml"}, tests: []string{"."}},
	"internal/schema":        {libs: []string{"github.com/santhosh-tekuri/jsonschema/v6"}},
	"internal/host":          {libs: []string{"github.com/shirou/gopsutil/v4"}},
	"internal/config":        {libs: []string{"github.com/goccy/go-yaml"}},

	// Transport: decode, call, encode. Rules only to check what was sent.
	"internal/httpapi": {
		imports: []string{
			".", "internal/rules", "internal/scheduler", "internal/token", "internal/telemetry",
			"internal/recovery", "internal/quota", "internal/fault", "internal/scan",
		},
		libs: []string{"github.com/go-json-experiment/json"},
		tests: []string{
			"internal/store/sqlite", "internal/store/postgres", "internal/pgtest", "internal/sentinel",
			"internal/scan/scantest", "github.com/getkin/kin-openapi",
		},
	},

	// What lies in a workspace: the shim writes it, the monitor reads it.
	"internal/sentinel": {
		imports: []string{".", "internal/fault"}, libs: []string{"github.com/google/renameio/v2", "golang.org/x/sys"},
	},

	// Judges what lies in a workspace, and asks the scheduler to act on it.
	"internal/recovery": {
		imports: []string{".", "internal/rules", "internal/scheduler", "internal/sentinel", "internal/fault"},
		tests: []string{
			"internal/store/sqlite", "internal/store/postgres", "internal/pgtest", "github.com/jackc/pgx/v5",
		},
	},

	"internal/dashboard": {
		imports: []string{
			".", "internal/rules", "internal/scheduler", "internal/token", "internal/recovery", "internal/httpapi",
			"internal/indent", "internal/quota", "internal/fault",
		},
		tests: []string{
			"internal/store/sqlite", "internal/telemetry", "internal/sentinel", "github.com/chromedp/chromedp",
			"github.com/chromedp/cdproto",
		},
	},

	// The other side of HTTP: it shares with the server the words, how JSON is read and a pause, and no other code.
	"client": {
		imports: []string{".", "internal/plainjson", "internal/scan", "internal/pause"},
		tests:   []string{"internal/scan/scantest"},
	},
	"internal/printer": {imports: []string{".", "client"}},
	"worker": {
		imports: []string{".", "client", "internal/plainjson", "internal/printer", "internal/pause"},
		libs:    []string{"go.opentelemetry.io/otel"},
		tests:   []string{"lessortest", "node", "worker/mailboxtest"},
	},

	"internal/executor": {
		imports: []string{
			".", "client", "internal/pause", "internal/plainjson", "internal/printer", "internal/sentinel",
		},
		libs: []string{"golang.org/x/sys"}, tests: []string{"node"},
	},

	// Agents: a model and its tools as the work of a message.
	"worker/mailboxtest": {imports: []string{"worker"}, libs: testLibs},
	"agent": {
		imports: []string{"worker", "internal/plainjson", "internal/pause"},
		libs:    []string{"github.com/prometheus/client_golang"},
		tests:   []string{"lessortest"},
	},
	"agent/openai": {imports: []string{"agent", "internal/pause"}, tests: []string{"lessortest", "worker"}},

	// The wiring.
	"node": {
		imports: []string{
			".", "internal/rules", "internal/scheduler", "internal/store/sqlite",
			"internal/store/postgres", "internal/token", "internal/telemetry", "internal/host", "internal/config",
			"internal/httpapi", "internal/alert", "internal/fault",
			"internal/recovery", "internal/sentinel", "internal/dashboard",
		},
		libs:  []string{"github.com/google/renameio/v2"},
		tests: []string{"client", "worker", "go.opentelemetry.io", "google.golang.org/protobuf", "internal/pgtest"},
	},

	// The server for the tests of others, and what such others look like.
	"lessortest":       {imports: []string{".", "client", "node", "worker"}},
	"examples":         {tests: []string{".", "client", "node", "worker", "golang.org/x/mod"}},
	"examples/minimal": {imports: []string{"client", "worker"}},
	"examples/drain":   {imports: []string{"client", "worker"}},
	"examples/mailbox": {imports: []string{"client", "worker"}},
	"examples/agent":   {imports: []string{"agent", "agent/openai", "client", "worker"}},

	// The programs.
	"internal/table": {libs: []string{"charm.land/lipgloss/v2"}},
	"internal/top":   {imports: []string{".", "client", "internal/table"}, libs: []string{"charm.land"}},
	"internal/demo":  {imports: []string{".", "client", "internal/pause"}},
	"internal/cli": {
		imports: []string{
			".", "client", "node", "internal/config", "internal/demo", "internal/manifest",
			"internal/store/sqlite", "internal/executor", "internal/sentinel", "internal/top",
			"internal/indent", "internal/plainjson", "internal/table", "internal/pause",
		},
		libs: []string{
			"github.com/spf13/cobra", "github.com/spf13/pflag", "charm.land/bubbletea/v2",
			"github.com/charmbracelet/x/term",
		},
		tests: []string{
			"golang.org/x/sys/unix", "github.com/goccy/go-yaml", // a pseudo-terminal; the manifests of deploy
		},
	},
	"cmd/lessor": {imports: []string{"internal/cli"}},

	// The proofs: a cluster in one goroutine, and real processes.
	"sim": {
		imports: []string{
			".", "internal/rules", "internal/fold", "internal/scheduler", "internal/store/memory",
		},
	},
	"chaos": {tests: []string{
		".", "client", "worker", "agent", "internal/pgtest", "github.com/anishathalye/porcupine",
	}},
	// Known faults, and the program that plants them.
	"planted": {},
}

// testLibs may be imported by every test: comparison, properties, leaks, scripts. There is no assertion library.
var testLibs = []string{
	"github.com/google/go-cmp", "pgregory.net/rapid", "go.uber.org/goleak", "github.com/rogpeppe/go-internal",
}

// impure lists the standard packages, with all below them, that bring I/O, a clock or random numbers.
var impure = []string{"crypto/rand", "database", "log", "math/rand", "net", "os", "syscall"}

// notFolders are names that say nothing about the contents.
var notFolders = []string{
	"base", "common", "core", "handler", "handlers", "helper", "helpers", "manager", "misc", "model", "models", "pkg",
	"service", "services", "shared", "types", "util", "utils",
}

// Lines that a file may have, and columns that a line may have, as in .editorconfig. Generated files have no limit.
const (
	maxLines     = 300
	maxTestLines = 500
	maxColumns   = 120
	tabColumns   = 4
)

// leftOver is written in two halves so that it does not find itself.
var leftOver = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME)\b`)

func TestLayers(t *testing.T) {
	tree := readTree(t, os.DirFS("."))
	for _, problem := range append(check(tree, layers), unused(tree, layers)...) {
		t.Error(problem)
	}
}

// TestLayersAreGuarded breaks each rule once, to show that each check can fail.
func TestLayersAreGuarded(t *testing.T) {
	table := map[string]layer{
		".":      {pure: true},
		"store":  {imports: []string{"."}, libs: []string{"example.org/db/v2"}, tests: []string{"client"}},
		"client": {imports: []string{"."}},
	}
	whole := map[string]string{
		"a.go":            "package lessor\nimport \"time\"\n",
		"client/c.go":     "package client\nimport (\"net/http\"; \"MODULE\")\n",
		"store/s.go":      "package store\nimport (\"MODULE\"; \"example.org/db/v2/driver\")\n",
		"store/s_test.go": "package store\nimport (\"time\"; \"MODULE/client\")\nfunc f() { time.Sleep(1) }\n",
		"bench/go.mod":    "module MODULE/bench\n",
		"bench/main.go":   "package main\nimport \"example.org/peer\"\n",
	}
	long, wide := strings.Repeat("\n", maxTestLines), "\t//"+strings.Repeat("é", maxColumns-tabColumns-2)
	named := func(text string) string { return strings.ReplaceAll(text, "MODULE", module) }
	const words, client, store = "package lessor\n", "package client\n", "package store\n"
	const sleep = "import \"time\"\nfunc f() { time.Sleep(1) }\n"
	for _, c := range []struct{ name, file, text, want string }{
		{"nothing wrong", "", "", ""},
		{"package not listed", "extra/e.go", "package extra\n", "extra: not in the table"},
		{"package gone", "client/c.go", "", "client: in the table, but there is no such package"},
		{"package gone but for its test", "store/s.go", "", "store: in the table, but there is no such package"},
		{"arrow not listed", "client/c.go", client + `import "MODULE/store"`, `client/c.go: imports "MODULE/store"`},
		{"words import a package", "a.go", words + `import "MODULE/client"`, `a.go: imports "MODULE/client"`},
		{"words import a library", "a.go", words + `import "example.org/db/v2"`, `a.go: imports "example.org/db/v2"`},
		{"words reach outside", "a.go", "package lessor\nimport \"net/http\"\n", `a.go: imports "net/http"`},
		{"words read a clock", "a.go", "package lessor\nimport t \"time\"\nvar n = t.Now()\n", "a.go:3: time.Now"},
		{"library not listed", "client/c.go", client + `import "example.org/x"`, `client/c.go: imports "example.org/x`},
		{
			"prefix is not a path", "store/s.go", store + `import "example.org/db/v20"`,
			`store/s.go: imports "example.org/db/v20"`,
		},
		{"cgo", "store/s.go", "package store\nimport \"C\"\n", `store/s.go: imports "C"`},
		{"import for tests", "store/s.go", store + `import "MODULE/client"`, `store/s.go: imports "MODULE/client"`},
		{"folder that says nothing", "bench/util/x/x.go", "package x\n", `bench/util/x: "util" says nothing`},
		{"long file", "store/s.go", "package store\n" + long[:maxLines], "store/s.go: 301 lines"},
		{"long test", "store/s_test.go", "package store\n" + long, "store/s_test.go: 501 lines"},
		{"long test by one less", "store/s_test.go", "package store\n" + long[1:], ""},
		{"long generated file", "store/s.go", "// Code generated by hand. DO NOT EDIT.\n\npackage store\n" + long, ""},
		{"long line", "store/s.go", store + wide + "é\n", "store/s.go:2: 121 columns"},
		{"long line by one less", "store/s.go", store + wide + "\n", ""},
		{"long generated line", "store/s.go", "// Code generated by hand. DO NOT EDIT.\n\n" + store + wide + "é\n", ""},
		{"sleep", "store/s.go", store + sleep, "store/s.go:3: time.Sleep"},
		{"sleep in a nested module", "bench/main.go", "package main\n" + sleep, "bench/main.go:3: time.Sleep"},
		{"left-over", "store/s.go", "package store\n\n// TO" + "DO: more\n", "store/s.go:3: left over"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := fstest.MapFS{}
			for file, text := range whole {
				tree[file] = &fstest.MapFile{Data: []byte(named(text))}
			}
			if c.text != "" {
				tree[c.file] = &fstest.MapFile{Data: []byte(named(c.text))}
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
			if len(got) != 1 || !strings.HasPrefix(got[0], named(c.want)) {
				t.Fatalf("got %q, want one problem that begins with %q", got, c.want)
			}
		})
	}
}

func TestLayersAllowOnlyWhatIsImported(t *testing.T) {
	tree := readTree(t, fstest.MapFS{
		"store/s.go": {Data: []byte("package store\n" +
			"import (\"example.org/db/v2/driver\"; \"" + module + "/words\")\n")},
	})
	table := map[string]layer{
		"store": {imports: []string{"words", "rules"}, libs: []string{"example.org/db", "example.org/d"}},
	}
	got := strings.Join(unused(tree, table), "\n")
	if got != "store: may import rules, and does not\nstore: may import example.org/d, and does not" {
		t.Errorf("got:\n%s", got)
	}
}
