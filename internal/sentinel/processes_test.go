package sentinel

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// monitoring is where no process id may be stored, read or compared: ids are reused, and mean nothing after a restart.
var monitoring = []string{".", "../recovery"}

var (
	forbiddenName = regexp.MustCompile(
		`^p(p|g)?ids?($|[A-Z_])|[Pp]id(s|$|[A-Z_])|PID|pid$|^(FindProcess|Getpgid|Getsid|Kill)$`)
	forbiddenText = regexp.MustCompile(`(?i)/proc\b|\bpids?\b|pidfile`)
)

// TestNoProcessIDs reads the code: no name, field, call or text that has to do with process ids.
func TestNoProcessIDs(t *testing.T) {
	files := 0
	for _, dir := range monitoring {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			files++
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range processIDs(t, name, text) {
				t.Error(problem)
			}
		}
	}
	if files == 0 {
		t.Error("there is nothing to look at")
	}
}

func TestProcessIDsAreNoticed(t *testing.T) {
	for _, code := range []string{
		"import \"os\"\nvar x = os.Getpid()", "import \"os\"\nvar x, y = os.FindProcess(1)",
		"import \"syscall\"\nvar x = syscall.Kill(1, 0)",
		"type s struct { Pid int }", "type s struct { N int `json:\"pid\"` }", "var shimPID int",
		"const f = \"/proc/self\"", "func f(pid int) {}",
	} {
		if got := processIDs(t, "x.go", []byte("package x\n"+code+"\n")); len(got) == 0 {
			t.Errorf("not noticed: %s", code)
		}
	}
	if got := processIDs(t, "x.go", []byte("package x\nvar rapidly, kill int\n")); len(got) > 0 {
		t.Errorf("noticed where there is nothing: %q", got)
	}
}

func processIDs(t *testing.T, name string, text []byte) []string {
	t.Helper()
	pos := token.NewFileSet()
	file, err := parser.ParseFile(pos, name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var problems []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if forbiddenName.MatchString(n.Name) {
				problems = append(problems, pos.Position(n.Pos()).String()+": "+n.Name)
			}
		case *ast.BasicLit:
			if s, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING &&
				forbiddenText.MatchString(s) {
				problems = append(problems, pos.Position(n.Pos()).String()+": "+n.Value)
			}
		}
		return true
	})
	return problems
}
