package examples_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// elsewhere is a path under which somebody publishes this project.
const elsewhere = "example.org/you/lessor"

// everything is the program of a stranger who uses a server, a worker, a client, and a mailbox on Redis.
const everything = `package main

import (
	"context"
	"fmt"
	"os"

	"MODULE"
	"MODULE/client"
	"MODULE/mailbox/redis"
	"MODULE/node"
	"MODULE/worker"
)

var _ worker.Mailbox = (*redis.Mailbox)(nil)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	n, err := node.Open(ctx, node.Config{Data: os.Args[1]}, nil)
	if err != nil {
		return err
	}
	ln, pipe := node.Pipe()
	go n.Serve(ctx, ln)
	c, err := client.New(client.Config{HTTP: pipe})
	if err != nil {
		return err
	}
	if _, err := c.Submit(ctx, "greet", map[string]string{"name": "stranger"}, &lessor.SubmitOptions{}); err != nil {
		return err
	}
	w, err := worker.New(worker.Config{Client: c})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx) // ends the worker; the server stays until the program ends
	worker.Handle(w, "greet", func(ctx context.Context, job *worker.Job[struct{ Name string }]) (any, error) {
		fmt.Println("hello,", job.Payload.Name)
		stop()
		return nil, nil
	})
	return w.Run(ctx)
}
`

// TestStrangerImportsTheModule renames a copy of this tree, publishes it in a folder, and builds the modules of
// strangers with nothing but go get.
func TestStrangerImportsTheModule(t *testing.T) {
	t.Parallel()
	copied, files := copyTree(t)
	goIn(t, copied, nil, "run", "-C", "tools", "./module", elsewhere)
	goIn(t, copied, nil, "test", "-run", "Layers|Architecture", ".")
	proxy := t.TempDir()
	version := publish(t, proxy, copied, ".", "mailbox/redis", "mailbox/sqs")
	env := []string{
		"GOPROXY=file://" + proxy + "," + "file://" + filepath.Join(goEnv(t, "GOMODCACHE"), "cache/download") + "," +
			strings.TrimSuffix(goEnv(t, "GOPROXY"), ",direct"),
		"GOMODCACHE=" + moduleCache(t), "GONOSUMDB=" + elsewhere, "GOSUMDB=off",
		"GOFLAGS=-trimpath", "CGO_ENABLED=0", "GOWORK=off",
	}

	t.Run("everything", func(t *testing.T) {
		stranger := newModule(t, everything, env, elsewhere+"/node@"+version, elsewhere+"/mailbox/redis@"+version,
			elsewhere+"/mailbox/sqs@"+version)
		goIn(t, stranger, env, "build", "-o", "app", ".")
		out, err := exec.Command(filepath.Join(stranger, "app"), t.TempDir()).Output() // its log goes elsewhere
		if err != nil || string(out) != "hello, stranger\n" {
			t.Errorf("the program wrote %q (%v)", out, err)
		}
	})

	t.Run("client and worker", func(t *testing.T) {
		const program = "package main\n\nimport _ \"MODULE/client\"\nimport _ \"MODULE/worker\"\n\nfunc main() {}\n"
		stranger := newModule(t, program, env, elsewhere+"/client", elsewhere+"/worker") // the newest
		goIn(t, stranger, env, "build", ".")
		list := goIn(t, stranger, env, "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
		light := regexp.MustCompile(`^(stranger\.example/app|` + regexp.QuoteMeta(elsewhere) +
			`(/client|/worker|/internal/(pause|plainjson|printer|scan))?|` +
			`go\.opentelemetry\.io/.*|github\.com/go-logr/.*|github\.com/cespare/xxhash/v2)$`)
		for dep := range strings.FieldsSeq(list) {
			if !light.MatchString(dep) {
				t.Errorf("a program that imports only client and worker compiles %s", dep)
			}
		}
		if !strings.Contains(list, elsewhere+"/worker\n") {
			t.Errorf("go list printed %q", list)
		}
	})

	goIn(t, copied, nil, "run", "-C", "tools", "./module", "lessor")
	for name, text := range files {
		if back, err := os.ReadFile(filepath.Join(copied, name)); err != nil || !bytes.Equal(back, text) {
			t.Errorf("%s differs after it was renamed there and back (%v)", name, err)
		}
	}
}

// copyTree copies the files that git knows or would add, to a repository of their own.
func copyTree(t *testing.T) (folder string, files map[string][]byte) {
	t.Helper()
	list, err := exec.Command("git", "-C", "..", "ls-files", "-z", "-co", "--exclude-standard",
		"--deduplicate").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	folder, files = t.TempDir(), map[string][]byte{}
	for name := range strings.SplitSeq(strings.Trim(string(list), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join("..", name))
		if os.IsNotExist(err) { // removed, and not yet committed
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, name), text)
		files[name] = text
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}} {
		if out, err := exec.Command("git", append([]string{"-C", folder}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args[0], err, out)
		}
	}
	return folder, files
}

// publish writes modules of a tree to a proxy, in the version of the root module that the nested ones require.
func publish(t *testing.T, proxy, tree string, folders ...string) (version string) {
	t.Helper()
	nested, err := os.ReadFile(filepath.Join(tree, folders[1], "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	version = string(regexp.MustCompile(`\t` + elsewhere + ` (v\S+)`).FindSubmatch(nested)[1])
	for _, folder := range folders {
		path := strings.TrimSuffix(elsewhere+"/"+folder, "/.")
		var archive bytes.Buffer
		v := module.Version{Path: path, Version: version}
		if err := zip.CreateFromDir(&archive, v, filepath.Join(tree, folder)); err != nil {
			t.Fatalf("pack %s: %v", path, err)
		}
		mod, err := os.ReadFile(filepath.Join(tree, folder, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		info, err := json.Marshal(map[string]string{"Version": version})
		if err != nil {
			t.Fatal(err)
		}
		base := filepath.Join(proxy, path, "@v", version)
		write(t, base+".zip", archive.Bytes())
		write(t, base+".mod", mod)
		write(t, base+".info", info)
		write(t, filepath.Join(filepath.Dir(base), "list"), []byte(version+"\n"))
	}
	return version
}

// moduleCache returns a cache that shares everything with the real one except what this test publishes.
func moduleCache(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, below := range []string{"", "cache/download"} {
		shared := filepath.Join(goEnv(t, "GOMODCACHE"), below)
		entries, err := os.ReadDir(shared)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(folder, below), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() == "cache" || strings.HasPrefix(e.Name(), "example.org") {
				continue
			}
			if err := os.Symlink(filepath.Join(shared, e.Name()), filepath.Join(folder, below, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	return folder
}

// newModule makes the module of a stranger, with its program and what it depends on.
func newModule(t *testing.T, program string, env []string, get ...string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	write(t, filepath.Join(folder, "main.go"), []byte(strings.ReplaceAll(program, "MODULE", elsewhere)))
	goIn(t, folder, env, "mod", "init", "stranger.example/app")
	goIn(t, folder, env, append([]string{"get", "-modcacherw"}, get...)...)
	return folder
}

func write(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	return strings.TrimSpace(goIn(t, ".", nil, "env", name))
}

// goIn runs the go command in a folder and returns what it printed.
func goIn(t *testing.T, folder string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return string(out)
}
