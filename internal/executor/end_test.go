package executor

import (
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"lessor"
)

func (l *logged) to(c *Config) { c.Log = slog.New(slog.NewTextHandler(l, nil)) }

// TestLastProgressIsNotLost has commands that report their progress and end at once.
func TestLastProgressIsNotLost(t *testing.T) {
	for name, end := range map[string]string{"completed": "exit 0", "failed": "exit 1"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 30*time.Second)
			b.work(nil, `"$LESSOR" progress 0.4 begun; "$LESSOR" progress 0.9 'almost done'; `+end)
			j := b.awaitJob(b.submit("{}"), "ended",
				func(j lessor.Job) bool { return j.LeaseID == nil && j.Attempt > 0 })
			if j.Progress == nil || *j.Progress != 0.9 || j.Message == nil || *j.Message != "almost done" {
				t.Errorf("the job shows progress %v, message %v", j.Progress, j.Message)
			}
		})
	}
}

// TestLastReportOutlivesAKilledShim kills the shim of a command that has ended, while the shim cannot reach a server:
// the Runner reports from the exit record what the command reported last.
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
		t.Fatalf("progress %v reached the server before the end", *j.Progress)
	}
	cut.Store(false)
	j := b.awaitState(id, lessor.Completed)
	if j.Progress == nil || *j.Progress != 0.9 || j.Message == nil || *j.Message != "almost done" ||
		string(j.Checkpoint) != `{"at":9}` {
		t.Errorf("the job shows progress %v, message %v, checkpoint %s", j.Progress, j.Message, j.Checkpoint)
	}
}

// proxy returns the address of a proxy in front of the server. A call that answer answers does not reach the server.
func (b *bench) proxy(answer func(http.ResponseWriter, *http.Request) bool) string {
	at, err := url.Parse(b.server)
	if err != nil {
		b.t.Fatal(err)
	}
	through := httputil.NewSingleHostReverseProxy(at)
	through.ErrorLog = log.New(io.Discard, "", 0) // calls that wait end with their Runner
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answer(w, r) {
			through.ServeHTTP(w, r)
		}
	}))
	b.t.Cleanup(s.Close)
	return s.URL
}

// cuttable has Runners and shims reach the server through a proxy that answers 503 while the returned value is true.
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

// TestHungServerCostsNoLease: the first of two servers accepts calls and answers none, for longer than the ttl, while a
// command runs and when its end is reported.
func TestHungServerCostsNoLease(t *testing.T) {
	for name, script := range map[string]string{"running": `sleep 7`, "ended": `sleep 1`} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 4*time.Second)
			var hung atomic.Bool
			b.server = b.proxy(func(_ http.ResponseWriter, r *http.Request) bool {
				if !hung.Load() {
					return false
				}
				_, _ = io.Copy(io.Discard, r.Body) // the server notices from then on when its caller leaves
				<-r.Context().Done()
				return true
			}) + "," + b.server
			b.work(nil, `echo > begun; `+script)
			id := b.submit("{}")
			b.awaitFile(id, "begun")
			hung.Store(true)
			if j := b.awaitState(id, lessor.Completed); j.Attempt != 1 {
				t.Errorf("completed by attempt %d", j.Attempt)
			}
		})
	}
}

// TestPermanentExitIsNotRetried also checks that another exit code is retried, and that both are warnings.
func TestPermanentExitIsNotRetried(t *testing.T) {
	b := newBench(t, 30*time.Second)
	var log logged
	b.work(func(c *Config) { log.to(c); c.Task.PermanentExit = []int{77, 78} },
		`[ $LESSOR_ATTEMPT = 1 ] && exit 9; echo bad settings >&2; exit 78`)
	j := b.awaitJob(b.submit("{}"), "failed for good", func(j lessor.Job) bool {
		return j.State == lessor.Failed && j.RetryAt.IsZero()
	})
	if j.Attempt != 2 || j.Error == nil || *j.Error != "exit status 78\nbad settings" {
		t.Errorf("attempt %d, error %v", j.Attempt, j.Error)
	}
	for attempt, status := range []string{"9", "78"} {
		await(t, "the warning", func() bool {
			return log.count(`level=WARN msg=failed job_id=`+j.ID.String()+` attempt=`+strconv.Itoa(attempt+1)+
				` status="exit status `+status+`"`) == 1
		})
	}
}

// TestStoppingRunnerSaysWhatContinues also checks that the next Runner warns of the failure of what continued.
func TestStoppingRunnerSaysWhatContinues(t *testing.T) {
	b := newBench(t, 30*time.Second)
	var log logged
	stop := b.work(log.to, `echo x > begun; while [ ! -e go ]; do sleep 0.02; done; exit 4`)
	id := b.submit("{}")
	b.awaitFile(id, "begun")
	stop()
	if log.count("continue without this program") != 1 || log.count("running=1 jobs=["+id.String()+"]") != 1 ||
		log.count("WARN") != 0 {
		t.Errorf("the log is\n%s", log.all.String())
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
	for l, err := range b.client.AllLeases(t.Context(), "") {
		if err != nil || l.TTLMS != 90_000 {
			t.Errorf("a lease of %d ms, %v", l.TTLMS, err)
		}
	}
}

// TestProcessThatLeftTheGroupEndsWithItsCommand has a command that starts a daemon, which holds a pipe open until it
// ends, and then ends by itself or is cancelled.
func TestProcessThatLeftTheGroupEndsWithItsCommand(t *testing.T) {
	for name, cancel := range map[string]bool{"ended": false, "cancelled": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 600*time.Millisecond)
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
				t.Fatalf("the daemon outlives its command: %v", err)
			}
			b.awaitJob(id, "ended", func(j lessor.Job) bool { return j.LeaseID == nil })
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
