package cli

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A block is a shell block of a document. A comment above it that a reader does not see says why it is not run:
//
//	<!-- not run: it needs two machines -->
type block struct{ at, why, text string }

var (
	shellBlock = regexp.MustCompile("(?ms)^(?:<!-- not run: ([^\n]*) -->\n)?```sh\n(.*?)^```")
	// endless are lines that a reader ends with Ctrl-C.
	endless = regexp.MustCompile(`^lessor work\b`)
	// A placeholder means an id in the answer to the command before.
	answers = strings.NewReplacer("LEASE_ID", `$(grep -oP '"lease_id":"\K[^"]*' answers | tail -n 1)`,
		"token delete ID", `token delete $(lessor token list | awk '/render-farm/ {print $1}')`,
		"seconds=20", "seconds=1", "/etc/lessor.yaml", "lessor.yaml", "bin/lessor", "lessor")
)

// TestDocsShellBlocksRun runs the shell blocks of README.md and docs against one server, as a reader with a terminal
// would. A command must succeed; one that is endless is ended after a second.
func TestDocsShellBlocksRun(t *testing.T) {
	var script strings.Builder
	script.WriteString(prelude)
	run, skipped := 0, 0
	for _, b := range shellBlocks(t) {
		if b.why != "" {
			t.Logf("%s is not run: %s", b.at, b.why)
			skipped++
			continue
		}
		run++
		fmt.Fprintf(&script, "\nnow=%q\n", b.at)
		for line := range strings.Lines(answers.Replace(strings.ReplaceAll(b.text, "\\\n", " "))) {
			line = strings.TrimSpace(line)
			switch {
			case endless.MatchString(line):
				line, _, _ = strings.Cut(line, "  #")
				fmt.Fprintf(&script, "endless %s\n", line)
			case strings.HasPrefix(line, "curl"):
				fmt.Fprintf(&script, "%s\n", strings.Replace(line, "curl", "curl --fail-with-body", 1))
			default:
				fmt.Fprintln(&script, line)
			}
		}
	}
	if run < 15 || skipped > 12 {
		t.Errorf("%d blocks are run and %d are not: are they found?", run, skipped)
	}
	play(t, script.String())
}

// prelude starts the server, submits what the documents presume, and says which block fails.
const prelude = `set -eEuo pipefail
now='the start'
children=()
trap 'echo "FAILED in $now: $BASH_COMMAND" >&2' ERR
trap 'kill $server; wait $server' EXIT
lessor serve --data lessor-data --listen "127.0.0.1:$PORT" >server.log 2>&1 & server=$!
until lessor jobs >/dev/null 2>&1; do kill -0 $server; sleep 0.05; done
for try in 1 2 3; do lessor submit hello >/dev/null; done
lessor schedules apply -f docs/examples/books.yaml >/dev/null
export TOKEN=$(cat lessor-data/admin.token)
endless() { # endless COMMAND…: runs a command that does not end by itself for a second
	{ status=0; timeout -k 5 1 "$@" >>endless.log 2>&1 || status=$?
		[ $status = 124 ] || { echo "FAILED in $now: $*: exit $status" >&2; cat endless.log >&2; kill $$; }; } &
	children+=($!)
}
exec > >(tee -a answers)
`

// play runs a script in a folder that looks like a clone after make build.
func play(t *testing.T, script string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, name := range []string{"docs", "examples", "go.mod"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"lessor.yaml": "lease: {ttl: 30s}\n", "schema.json": `{"type": "object"}`,
		"render.sh": "#!/bin/sh\nexec cat \"$LESSOR_PAYLOAD_FILE\"\n", "agent.sh": "#!/bin/sh\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := ln.Addr().String()
	_, port, _ := net.SplitHostPort(server)
	_ = ln.Close()
	script = strings.ReplaceAll(script, "127.0.0.1:5377", server) + "\nwait \"${children[@]}\"\n"
	if err := os.WriteFile(filepath.Join(folder, "blocks.sh"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "blocks.sh")
	cmd.Dir = folder
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Env = append(os.Environ(), "LESSOR_SERVER=http://"+server, "SERVER=http://"+server, "PORT="+port,
		"MODEL_KEY=none")
	err = cmd.Run()
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(folder, "server.log"))
		t.Fatalf("%v\n%s\nthe server's log:\n%s", err, &out, log)
	}
}

func shellBlocks(t *testing.T) []block {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	for _, file := range append([]string{"../../README.md"}, files...) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range shellBlock.FindAllSubmatchIndex(raw, -1) {
			b := block{text: string(raw[m[4]:m[5]])}
			b.at = fmt.Sprintf("%s:%d", filepath.Base(file), 1+bytes.Count(raw[:m[4]], []byte("\n")))
			if m[2] >= 0 {
				b.why = string(raw[m[2]:m[3]])
			}
			blocks = append(blocks, b)
		}
	}
	return blocks
}
