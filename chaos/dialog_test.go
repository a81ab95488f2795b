package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lessor"
	"lessor/client"
	"lessor/internal/pgtest"
	sdk "lessor/worker"
)

// The environment of a process that receives messages: the servers, the last message, and the file that it writes.
const (
	listenVariable = "LESSOR_CHAOS_LISTEN"
	listenLast     = "LESSOR_CHAOS_LISTEN_LAST"
	listenFile     = "LESSOR_CHAOS_LISTEN_FILE"
)

// twoNodes starts two nodes on one PostgreSQL.
func twoNodes(t *testing.T) (victim, other *server) {
	t.Helper()
	env := []string{
		"LESSOR_STORE=" + database(t, pgtest.Options{Durable: true}).URL("postgres"), "LESSOR_CAPACITY_BUSY=0",
		"LESSOR_LEASE_TTL=2s", "LESSOR_LEASE_SWEEP=50ms", "LESSOR_JOBS_BACKOFF_FIRST=10ms",
	}
	return start(t, env...), start(t, env...)
}

// TestMessagesSurviveKills sends messages to a job through one node of two, while its workers and the other node are
// killed: a worker of the SDK, and a command under a shim. Each sees every message once, in order. With
// LESSOR_CHAOS=full there are 10,000.
func TestMessagesSurviveKills(t *testing.T) {
	t.Parallel()
	d := dialog{all: 400, kills: 4}
	if os.Getenv("LESSOR_CHAOS") == "full" {
		d.all, d.kills = 10_000, 20
	}
	t.Run("sdk", func(t *testing.T) {
		d.victim, d.other = twoNodes(t)
		d.file = filepath.Join(t.TempDir(), "messages")
		id := d.submit(t, "listen")
		var cmd *exec.Cmd
		end := func() {
			_ = cmd.Process.Kill() // it may have ended
			_ = cmd.Wait()         // it was killed
		}
		begin := func() {
			cmd = exec.Command(os.Args[0], "-test.run=^$")
			cmd.Env = append(os.Environ(), listenVariable+"="+d.servers(), listenLast+"="+d.text(d.all),
				listenFile+"="+d.file)
			must(t, cmd.Start())
		}
		begin()
		defer func() { end() }()
		d.run(t, id, func() {
			end()
			begin()
		})
	})
	t.Run("command", func(t *testing.T) {
		d.victim, d.other = twoNodes(t)
		workspace := t.TempDir()
		id := d.submit(t, "long")
		folder := filepath.Join(workspace, "jobs", id.String())
		d.file = filepath.Join(folder, "messages.jsonl")
		w := &worker{t: t, args: []string{
			"work", "--type", "long", "--server", d.servers(), "--workspace", workspace, "--shell", "--",
			fmt.Sprintf(`echo $PPID > shim.new; mv shim.new shim
				until grep -q '"%s"' "$LESSOR_MESSAGES_FILE"; do sleep 0.05; done`, d.text(d.all)),
		}}
		w.start()
		t.Cleanup(func() {
			w.kill()
			endShims(t, workspace)
		})
		last := ""
		d.run(t, id, func() {
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
				raw, err := os.ReadFile(filepath.Join(folder, "shim"))
				if shim := strings.TrimSpace(string(raw)); err == nil && shim != last {
					pid, err := strconv.Atoi(shim)
					must(t, err)
					must(t, syscall.Kill(pid, syscall.SIGKILL))
					last = shim
					return
				}
				if time.Now().After(deadline) {
					t.Fatal("no new attempt began within a minute")
				}
			}
		})
	})
}

// dialog is a job that gets messages while its workers and a node are killed.
type dialog struct {
	victim, other *server
	file          string // of the messages that the job has seen, one a line
	all, kills    int
}

func (d *dialog) servers() string { return "http://" + d.victim.addr + ",http://" + d.other.addr }

func (d *dialog) text(n int) string { return fmt.Sprint("number ", n) }

func (d *dialog) submit(t *testing.T, kind string) lessor.JobID {
	t.Helper()
	job, err := d.other.client().Submit(t.Context(), kind, struct{}{}, &lessor.SubmitOptions{MaxAttempts: 50})
	must(t, err)
	return job.ID
}

// run sends the messages, and kills the worker and the victim in turn whenever a part of them was seen.
func (d *dialog) run(t *testing.T, id lessor.JobID, kill func()) {
	var sender sync.WaitGroup
	defer sender.Wait()
	killed := make(chan struct{})
	release := sync.OnceFunc(func() { close(killed) })
	defer release()
	sender.Go(func() { d.send(t, d.other.client(), id, killed) })
	for n := range d.kills {
		for deadline := time.Now().Add(5 * time.Minute); d.seen(t) < (n+1)*d.all/(d.kills+2); {
			if time.Now().After(deadline) || t.Failed() {
				t.Fatalf("after %d kills %d of %d messages were seen", n, d.seen(t), d.all)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if kill(); n%2 == 0 {
			d.victim.kill()
			d.victim.start()
		}
	}
	release()
	c := d.other.client()
	await(t, c, id, "completed", func(j lessor.Job) bool { return j.State == lessor.Completed })
	raw, err := os.ReadFile(d.file)
	must(t, err)
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	for i, line := range lines {
		var m lessor.Message
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Text != d.text(i+1) {
			t.Fatalf("line %d is %q (%v)", i+1, line, err)
		}
	}
	if len(lines) != d.all {
		t.Errorf("%d messages were seen, want %d", len(lines), d.all)
	}
}

// send sends the messages, the last one after all kills.
func (d *dialog) send(t *testing.T, c *client.Client, id lessor.JobID, killed chan struct{}) {
	for n := 1; n <= d.all && !t.Failed(); {
		if n == d.all {
			<-killed
		}
		_, err := c.Message(t.Context(), id, d.text(n))
		switch {
		case err == nil:
			n++
		case lessor.CodeOf(err) == lessor.CodeConflict:
			time.Sleep(10 * time.Millisecond) // a thousand wait
		default:
			t.Error(err)
			return
		}
	}
}

// seen returns how many messages the job has seen.
func (d *dialog) seen(t *testing.T) int {
	raw, err := os.ReadFile(d.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return bytes.Count(raw, []byte("\n"))
}

// listen is a process that appends each message that it has not seen to a file, and ends with the last one.
func listen(servers string) {
	file, last := os.Getenv(listenFile), os.Getenv(listenLast)
	c, err := client.New(client.Config{Server: servers})
	fatal(err)
	w, err := sdk.New(sdk.Config{Client: c, Log: slog.New(slog.DiscardHandler)})
	fatal(err)
	sdk.Handle(w, "listen", func(ctx context.Context, job *sdk.Job[struct{}]) (any, error) {
		var seen lessor.Message
		if raw, err := os.ReadFile(file); err == nil {
			lines := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
			if err := json.Unmarshal(lines[len(lines)-1], &seen); err != nil {
				return nil, err
			}
		}
		out, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		defer func() { _ = out.Close() }() // each write was checked
		for m := range job.Messages(ctx) {
			if m.Seq <= seen.Seq {
				continue // it was seen, and its confirmation was lost
			}
			line, err := json.Marshal(m)
			if err == nil {
				_, err = out.Write(append(line, '\n'))
			}
			if err != nil || m.Text == last {
				return nil, err
			}
			seen = m
		}
		return nil, context.Cause(ctx)
	})
	fatal(w.Run(context.Background()))
}

// TestAnswersSurviveKills has two people answer the questions of a job at once, through two nodes of which one is
// killed meanwhile. One answer counts at most, and the next attempt gets the one that counts.
func TestAnswersSurviveKills(t *testing.T) {
	t.Parallel()
	victim, other := twoNodes(t)
	c := other.client()
	questions := 15
	if os.Getenv("LESSOR_CHAOS") == "full" {
		questions = 150
	}
	job, err := c.Submit(t.Context(), "ask", struct{}{}, &lessor.SubmitOptions{MaxAttempts: 50})
	must(t, err)
	answer := ""
	for n := range questions {
		grants, denied, err := c.Request(t.Context(), lessor.LeaseRequest{
			WorkerID: new("asker"), WaitMS: new(int64(30_000)), TTLMS: new(int64(60_000)),
		})
		must(t, err)
		if len(grants) != 1 || n > 0 && *grants[0].Job.Question.Answer != answer {
			t.Fatalf("question %d: granted %+v (%+v), want the answer %q", n, grants, denied, answer)
		}
		lease := grants[0].Lease
		must(t, c.Complete(t.Context(), lease.ID, lessor.Completion{
			WorkerID: new("asker"), Status: new("waiting"), ExpiresInS: new(int64(300)),
			Question: &lessor.Asking{Text: new(fmt.Sprint("question ", n))},
		}))
		question := lessor.QuestionID(lease.ID)
		var people sync.WaitGroup
		var won [2]bool
		for i, by := range []*client.Client{victim.client(), c} {
			people.Go(func() {
				time.Sleep(rand.N(20 * time.Millisecond))
				_, err := by.Answer(t.Context(), job.ID, question, fmt.Sprint("answer ", i))
				won[i] = err == nil
				switch lessor.CodeOf(err) {
				case lessor.CodeConflict, lessor.CodeUnavailable:
				case "": // the node was killed, and the answer may count
				default:
					t.Error(err)
				}
			})
		}
		if n%3 == 0 {
			time.Sleep(rand.N(20 * time.Millisecond))
			victim.kill()
			victim.start()
		}
		people.Wait()
		j, err := c.Job(t.Context(), job.ID)
		must(t, err)
		switch q := j.Question; {
		case won[0] && won[1]:
			t.Fatalf("question %d: both answers count", n)
		case q == nil || q.Answer == nil:
			t.Fatalf("question %d: answers %v, and it is %+v", n, won, q)
		case won[0] && *q.Answer != "answer 0", won[1] && *q.Answer != "answer 1":
			t.Fatalf("question %d: answers %v, and the one that counts is %q", n, won, *q.Answer)
		}
		answer = *j.Question.Answer
	}
}
