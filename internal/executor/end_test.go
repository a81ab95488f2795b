package executor

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/client"
	"lessor/internal/sentinel"
)

// to makes a Runner log into l.
func (l *logBuffer) to(c *Config) { c.Log = slog.New(slog.NewTextHandler(l, nil)) }

// TestLastProgressIsNotLost runs commands that report their progress and end at once.
func TestLastProgressIsNotLost(t *testing.T) {
	for name, end := range map[string]string{"completed": "exit 0", "failed": "exit 1"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 30*time.Second)
			b.work(nil, `"$LESSOR" progress 0.4 begun; "$LESSOR" progress 0.9 'almost done'; `+end)
			j := b.awaitJob(b.submit("{}"), "ended",
				func(j lessor.Job) bool { return j.LeaseID == nil && j.Attempt > 0 })
			if j.Progress == nil || *j.Progress != 0.9 || j.Message == nil || *j.Message != "almost done" {
				t.Errorf("progress %s, message %q; want 0.9 and its message", valueOf(j.Progress), valueOf(j.Message))
			}
		})
	}
}

// TestLastReportOutlivesAKilledShim kills the shim of a command that has ended, while the shim cannot reach a server.
// The Runner then sends the last report of the command, which it finds in the exit record.
func TestLastReportOutlivesAKilledShim(t *testing.T) {
	b := newBench(t, time.Minute)
	cut := b.cuttable()
	b.work(nil, `echo $PPID > shim; while [ ! -e go ]; do sleep 0.05; done
		"$LESSOR" progress 0.9 'almost done'; echo '{"at":9}' > "$LESSOR_CHECKPOINT_FILE"`)
	id := b.submit("{}")
	shim, err := strconv.Atoi(b.awaitFile(id, "shim"))
	if err != nil {
		t.Fatal(err)
	}
	cut.Store(true)
	if err := os.WriteFile(b.file(id, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	await(t, "the exit record", func() bool { _, err := b.folder(id).Exit(); return err == nil })
	if err := syscall.Kill(shim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if j := b.awaitJob(id, "held", func(j lessor.Job) bool { return j.LeaseID != nil }); j.Progress != nil {
		t.Fatalf("progress %v reached the server through the cut connection, want none", *j.Progress)
	}
	cut.Store(false)
	j := b.awaitState(id, lessor.Completed)
	if j.Progress == nil || *j.Progress != 0.9 || j.Message == nil || *j.Message != "almost done" ||
		string(j.Checkpoint) != `{"at":9}` {
		t.Errorf("progress %s, message %q, checkpoint %s; want 0.9, its message and 9", valueOf(j.Progress),
			valueOf(j.Message), j.Checkpoint)
	}
}

// proxy returns the address of a proxy in front of the server. A call for which answer returns true is not forwarded.
func (b *bench) proxy(answer func(http.ResponseWriter, *http.Request) bool) string {
	at, err := url.Parse(b.server)
	if err != nil {
		b.t.Fatal(err)
	}
	through := httputil.NewSingleHostReverseProxy(at)
	through.ErrorLog = log.New(io.Discard, "", 0) // a Runner that ends cuts its waiting calls
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answer(w, r) {
			through.ServeHTTP(w, r)
		}
	}))
	b.t.Cleanup(s.Close)
	return s.URL
}

// cuttable puts a proxy between the server and its Runners and shims. The proxy answers 503 while the returned value is
// true.
func (b *bench) cuttable() *atomic.Bool {
	var cut atomic.Bool
	b.server = b.proxy(func(w http.ResponseWriter, _ *http.Request) bool {
		if cut.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return cut.Load()
	})
	return &cut
}

// TestHungServerCostsNoLease: the first of two servers accepts calls and answers none for longer than the ttl, while a
// command runs, or when its end is reported.
func TestHungServerCostsNoLease(t *testing.T) {
	for name, script := range map[string]string{"running": `sleep 7`, "ended": `sleep 1`} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 4*time.Second)
			var hung atomic.Bool
			b.server = b.proxy(func(_ http.ResponseWriter, r *http.Request) bool {
				if !hung.Load() {
					return false
				}
				_, _ = io.Copy(io.Discard, r.Body) // only after this is the context cancelled when the caller leaves
				<-r.Context().Done()
				return true
			}) + "," + b.server
			b.work(nil, `echo > begun; `+script)
			id := b.submit("{}")
			b.awaitFile(id, "begun")
			hung.Store(true)
			if j := b.awaitState(id, lessor.Completed); j.Attempt != 1 {
				t.Errorf("completed by attempt %d, want 1", j.Attempt)
			}
		})
	}
}

// TestPermanentExitIsNotRetried: another exit code is retried, and each failure is logged as a warning.
func TestPermanentExitIsNotRetried(t *testing.T) {
	b := newBench(t, 30*time.Second)
	var log logBuffer
	b.work(func(c *Config) { log.to(c); c.Task.PermanentExit = []int{77, 78} },
		`[ $LESSOR_ATTEMPT = 1 ] && exit 9; echo bad settings >&2; exit 78`)
	j := b.awaitJob(b.submit("{}"), "failed for good", func(j lessor.Job) bool {
		return j.State == lessor.Failed && j.RetryAt.IsZero()
	})
	if j.Attempt != 2 || j.Error == nil || *j.Error != "exit status 78\nbad settings" {
		t.Errorf("attempt %d, error %q; want attempt 2 with exit status 78", j.Attempt, valueOf(j.Error))
	}
	for attempt, status := range []string{"9", "78"} {
		await(t, "the warning", func() bool {
			return log.count(`level=WARN msg=failed job_id=`+j.ID.String()+` attempt=`+strconv.Itoa(attempt+1)+
				` status="exit status `+status+`"`) == 1
		})
	}
}

// TestStoppingRunnerLogsTheCommandsThatContinue: the next Runner finds such a command, and warns when it fails.
func TestStoppingRunnerLogsTheCommandsThatContinue(t *testing.T) {
	b := newBench(t, 30*time.Second)
	var log logBuffer
	stop := b.work(log.to, `echo x > begun; while [ ! -e go ]; do sleep 0.02; done; exit 4`)
	id := b.submit("{}")
	b.awaitFile(id, "begun")
	stop()
	if log.count("continue without this program") != 1 || log.count("running=1 jobs=["+id.String()+"]") != 1 ||
		log.count("WARN") != 0 {
		t.Errorf("the log lacks the job that continues, or has warnings:\n%s", log.all.String())
	}
	b.work(log.to, `exit 0`)
	await(t, "the command to be found", func() bool { return log.count("still running") == 1 })
	if err := os.WriteFile(b.file(id, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	await(t, "the warning", func() bool {
		return log.count(`level=WARN msg=failed job_id=`+id.String()+` status="exit status 4"`) == 1
	})
}

func TestLeaseHasTheTTLThatWasAskedFor(t *testing.T) {
	b := newBench(t, 30*time.Second)
	b.work(func(c *Config) { c.TTL = 90 * time.Second }, `while [ ! -e go ]; do sleep 0.02; done`)
	id := b.submit("{}")
	b.awaitState(id, lessor.Running)
	leases := 0
	for l, err := range b.client.AllLeases(t.Context(), "") {
		leases++
		if err != nil || l.TTLMS != 90_000 {
			t.Errorf("a lease of %d ms, %v; want 90000 ms", l.TTLMS, err)
		}
	}
	if leases != 1 {
		t.Errorf("%d leases are listed, want 1", leases)
	}
}

// TestProcessThatLeftTheGroupEndsWithItsCommand runs a command that starts a daemon. The daemon holds a pipe open
// until it ends. The command ends by itself, or is cancelled.
func TestProcessThatLeftTheGroupEndsWithItsCommand(t *testing.T) {
	for name, cancel := range map[string]bool{"ended": false, "cancelled": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 5*time.Second)
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			b.work(nil, `(setsid sh -c 'exec > `+pipe+`; trap "" TERM; sleep 60 & wait; sleep 60' &)
				while [ ! -e go ]; do sleep 0.02; done`)
			id := b.submit("{}")
			held, err := os.Open(pipe) // returns when the daemon has opened it
			if err != nil {
				t.Fatal(err)
			}
			defer held.Close()
			if cancel {
				_, err = b.client.Cancel(t.Context(), id, false)
			} else {
				err = os.WriteFile(b.file(id, "go"), nil, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			_ = held.SetReadDeadline(time.Now().Add(60 * time.Second))
			if _, err := io.Copy(io.Discard, held); err != nil {
				t.Fatalf("the daemon lives a minute after its command: %v", err)
			}
			b.awaitJob(id, "ended", func(j lessor.Job) bool { return j.LeaseID == nil })
		})
	}
}

// TestExitRecordIsReportedWithTheNextToken deletes the token of a Runner shortly before its command ends. The next
// Runner has another token, and may run one command at a time.
func TestExitRecordIsReportedWithTheNextToken(t *testing.T) {
	b := newBench(t, 9*time.Second)
	var tokens [2]client.Token
	for i := range tokens {
		var err error
		if tokens[i], err = b.client.CreateToken(t.Context(), client.TokenRequest{Role: "worker"}); err != nil {
			t.Fatal(err)
		}
	}
	script := `[ -e ../second ] && exit 0
		echo > ../second; echo > begun; while [ ! -e go ]; do sleep 0.02; done; echo '{"n":7}' > "$LESSOR_RESULT_FILE"`
	stop := b.work(func(c *Config) { c.Token = tokens[0].Token }, script)
	first := b.submit("{}")
	b.awaitFile(first, "begun")
	stop()
	var log logBuffer
	b.work(func(c *Config) { log.to(c); c.Token = tokens[1].Token }, script)
	await(t, "the command to be found", func() bool { return log.count("still running") == 1 })
	if err := b.client.DeleteToken(t.Context(), tokens[0].ID); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.file(first, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.wantFirstResult(first)
	b.awaitState(b.submit("{}"), lessor.Completed)
	if said := b.read(first, shimLogName); !strings.Contains(said, "unauthenticated") {
		t.Errorf("the log of the shim says %q, want that its token was refused", said)
	}
}

// TestReportGivesUpIfTheTokenIsRefused: a server that gets many wrong tokens answers 429 to further ones. A token that
// is accepted again, and a limit alone, make no report fail.
func TestReportGivesUpIfTheTokenIsRefused(t *testing.T) {
	unauthenticated := &lessor.Error{Code: lessor.CodeUnauthenticated}
	for _, c := range []struct {
		name     string
		answer   func(since time.Duration) error
		accepted bool
	}{
		{"refused", func(time.Duration) error { return unauthenticated }, false},
		{"forbidden", func(time.Duration) error { return lessor.ErrForbidden }, false},
		{"refused, then limited", func(since time.Duration) error {
			if since < 5*time.Second {
				return unauthenticated
			}
			return lessor.ErrRateLimited
		}, false},
		{"limited for ten minutes", func(since time.Duration) error {
			if since < 10*time.Minute {
				return lessor.ErrRateLimited
			}
			return nil
		}, true},
		{"refused twice, with an outage in between", func(since time.Duration) error {
			switch since / (15 * time.Second) {
			case 0, 2:
				return unauthenticated
			case 1:
				return lessor.ErrUnavailable
			}
			return nil
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := makeJobFolder(t)
			synctest.Test(t, func(t *testing.T) {
				s := &shim{folder: f, log: slog.New(slog.DiscardHandler)}
				s.order.Grant.Lease = lessor.Lease{TTLMS: 60_000, Fence: 1}
				begun := time.Now()
				err := s.insist(t.Context(), func(context.Context) error { return c.answer(time.Since(begun)) })
				if (err == nil) != c.accepted {
					t.Errorf("the report ended with %v, want that it is accepted: %t", err, c.accepted)
				}
				if took := time.Since(begun); !c.accepted && (took < 20*time.Second || took > 22*time.Second) {
					t.Errorf("it gave up after %s, want a third of the ttl of a minute", took)
				}
			})
		})
	}
}

// TestStopAfterTheEndOfACommand stops the attempt of a command that has ended by itself, while its shim still waits for
// output, because a process elsewhere has opened the standard output of the command.
func TestStopAfterTheEndOfACommand(t *testing.T) {
	for _, c := range []struct {
		name   string
		stop   func(*sentinel.Folder, func()) error
		record bool
	}{
		{"by the Runner", func(_ *sentinel.Folder, stop func()) error {
			stop()
			return nil
		}, true},
		{"by a newer attempt", func(f *sentinel.Folder, _ func()) error { return f.AskToStop(1 << 61) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, time.Minute)
			stop := b.work(func(c *Config) { c.OnStop = OnStopStop },
				`echo $$ > pid; while [ ! -e go ]; do sleep 0.02; done`)
			id := b.submit("{}")
			proc := "/proc/" + b.awaitFile(id, "pid")
			held, err := os.OpenFile(proc+"/fd/1", os.O_WRONLY, 0)
			if err != nil {
				t.Skip(err) // not Linux
			}
			defer held.Close()
			f := b.folder(id)
			if err := os.WriteFile(b.file(id, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			await(t, "the command to end", func() bool {
				_, err := os.Stat(proc)
				return errors.Is(err, fs.ErrNotExist)
			})
			if err := c.stop(f, stop); err != nil {
				t.Fatal(err)
			}
			await(t, "the shim to end", func() bool { held, err := f.Locked(); return err == nil && !held })
			e, err := f.Exit()
			if recorded := err == nil && e.Status == lessor.Completed; recorded != c.record {
				t.Errorf("exit record %+v, %v; want a completed one: %t; the log of the shim is\n%s", e, err, c.record,
					b.read(id, shimLogName))
			}
			if j, err := b.client.Job(t.Context(), id); err != nil || (j.State == lessor.Completed) != c.record {
				t.Errorf("the job is %s (%v), want completed: %t", j.State, err, c.record)
			}
		})
	}
}

// TestStopReachesACommandWithinTwoSeconds stops jobs in every way that the server has, long before the next heartbeat.
// In the last case no Runner runs any more.
func TestStopReachesACommandWithinTwoSeconds(t *testing.T) {
	cancel := func(force bool) func(*bench, lessor.Job) error {
		return func(b *bench, j lessor.Job) error {
			_, err := b.client.Cancel(b.t.Context(), j.ID, force)
			return err
		}
	}
	revoke := func(b *bench, j lessor.Job) error { return b.client.Revoke(b.t.Context(), *j.LeaseID, "moved") }
	for _, c := range []struct {
		name     string
		stop     func(*bench, lessor.Job) error
		extendOn lessor.ExtendOn
		alone    bool
	}{
		{"cancel", cancel(false), lessor.ExtendOnLife, false},
		{"cancel of one that lives on progress", cancel(false), lessor.ExtendOnProgress, false},
		{"cancel by force", cancel(true), lessor.ExtendOnLife, false},
		{"revoke", revoke, lessor.ExtendOnLife, false},
		{"cancel of one whose Runner is gone", cancel(false), lessor.ExtendOnLife, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, time.Minute)
			on := func(cfg *Config) { cfg.Task.ExtendOn = c.extendOn }
			script := `[ $LESSOR_ATTEMPT = 2 ] && exit 0; trap 'echo asked > asked; exit 3' TERM;
				echo > begun; while :; do sleep 0.05; done`
			stopRunner := b.work(on, script)
			id := b.submit("{}")
			b.awaitFile(id, "begun")
			if c.alone {
				stopRunner()
			}
			job := b.awaitState(id, lessor.Running)
			start := time.Now()
			if err := c.stop(b, job); err != nil {
				t.Fatal(err)
			}
			b.awaitFile(id, "asked")
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("the command was asked to end after %v, want within 2 s", took)
			}
		})
	}
}
