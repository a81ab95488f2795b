package executor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/client"
	"lessor/internal/printer"
)

// doubled prints 3 MB to both streams, of which a server keeps 2 MiB, and completes its job.
const doubled = `head -c 3000000 /dev/zero | tr '\0' x; head -c 3000000 /dev/zero | tr '\0' y >&2
	echo '{"n":7}' > "$LESSOR_RESULT_FILE"`

// isOutput reports whether a call sends output.
func isOutput(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/output") }

// TestRefusedOutputCostsNoResult runs jobs behind a gateway that refuses output with an answer of its own, as nginx
// does with bodies of more than 1 MiB. The end is reported by the shim, or by the Runner if the shim was killed.
func TestRefusedOutputCostsNoResult(t *testing.T) {
	for name, shim := range map[string]string{"by the shim": "shim", "by the Runner": "doomed"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 3*time.Second)
			b.server = b.proxy(func(w http.ResponseWriter, r *http.Request) bool {
				if isOutput(r) {
					http.Error(w, "<h1>413 Request Entity Too Large</h1>", http.StatusRequestEntityTooLarge)
				}
				return isOutput(r)
			})
			id := b.submit("{}")
			if err := b.folder(id).WriteFile(stdoutName, []byte("left by a killed shim")); err != nil {
				t.Fatal(err)
			}
			b.work(func(c *Config) { c.Shim[1] = shim }, doubled)
			b.wantFirstResult(id)
		})
	}
}

// wantFirstResult fails the test unless the first attempt of a job completes it with {"n":7}.
func (b *bench) wantFirstResult(id lessor.JobID) {
	b.t.Helper()
	j := b.awaitJob(id, "final or retried", func(j lessor.Job) bool {
		return j.Final() || !j.RetryAt.IsZero() || j.Attempt > 1
	})
	if j.State != lessor.Completed || j.Attempt != 1 || string(j.Result) != `{"n":7}` {
		b.t.Errorf("the job is %s by attempt %d with result %s (%s), want completed by attempt 1 with n 7", j.State,
			j.Attempt, j.Result, valueOf(j.Error))
	}
}

// TestSlowOutputCostsNoResult runs a command whose last output takes longer than the ttl.
func TestSlowOutputCostsNoResult(t *testing.T) {
	b := newBench(t, 2*time.Second)
	b.server = b.proxy(func(_ http.ResponseWriter, r *http.Request) bool {
		if isOutput(r) {
			time.Sleep(time.Second)
		}
		return false
	})
	b.work(nil, doubled)
	id := b.submit("{}")
	b.wantFirstResult(id)
	if out := b.printed(id, lessor.Stdout); !strings.HasSuffix(b.read(id, stdoutName), out) || len(out) < 1<<20 {
		t.Errorf("the server has %d bytes of the output, want the end of it", len(out))
	}
}

// TestStopGivesTheJobBackBeforeTheOutput stops a Runner whose command prints much when it is asked to end. The output
// takes longer than the stop grace.
func TestStopGivesTheJobBackBeforeTheOutput(t *testing.T) {
	b := newBench(t, time.Minute)
	b.server = b.proxy(func(_ http.ResponseWriter, r *http.Request) bool {
		if isOutput(r) {
			time.Sleep(1500 * time.Millisecond)
		}
		return false
	})
	stop := b.work(func(c *Config) { c.OnStop, c.StopGrace = OnStopStop, 5*time.Second },
		`trap '`+strings.ReplaceAll(doubled, "'", `"`)+`; exit 3' TERM; echo > begun; while :; do sleep 0.05; done`)
	id := b.submit("{}")
	b.awaitFile(id, "begun")
	stop()
	if j, err := b.client.Job(t.Context(), id); err != nil || j.State != lessor.Queued {
		t.Errorf("the job is %s (%v), want queued; the log of its shim is\n%s", j.State, err, b.read(id, shimLogName))
	}
}

// TestRestOfTheOutputIsBounded sends the rest of an output through servers that fail in different ways.
func TestRestOfTheOutputIsBounded(t *testing.T) {
	outage := errors.New("no route to host")
	for _, c := range []struct {
		name     string
		answer   func(since time.Duration, output bool) (status int, body string, err error)
		least    time.Duration // that it takes
		most     time.Duration
		want     error
		complete bool
	}{
		{"a server that takes it", func(time.Duration, bool) (int, string, error) {
			return http.StatusOK, `{"tail_bytes":1048576}`, nil
		}, 0, time.Second, nil, true},
		{"an outage of an hour", func(since time.Duration, _ bool) (int, string, error) {
			if since < time.Hour {
				return 0, "", outage
			}
			return http.StatusOK, `{"tail_bytes":1048576}`, nil
		}, time.Hour, time.Hour + 2*time.Second, nil, true},
		{"a connection that breaks when output comes", func(_ time.Duration, output bool) (int, string, error) {
			if output {
				return 0, "", outage
			}
			return http.StatusOK, "{}", nil
		}, restTime, restTime + 10*time.Second, errSlowOutput, false},
		{"a rate limit", func(since time.Duration, output bool) (int, string, error) {
			if output && since < 20*time.Second {
				return http.StatusTooManyRequests, `{"code":"rate_limited"}`, nil
			}
			return http.StatusOK, `{"tail_bytes":1048576}`, nil
		}, 20 * time.Second, 22 * time.Second, nil, true},
		{"a lease that ends", func(since time.Duration, output bool) (int, string, error) {
			if output || since < 15*time.Second {
				return 0, "", outage
			}
			return http.StatusNotFound, `{"code":"lease_not_found"}`, nil
		}, 15 * time.Second, 40 * time.Second, lessor.ErrLeaseNotFound, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				to := answers(func(output bool) (int, string, error) { return c.answer(time.Since(begun), output) })
				server, err := client.New(client.Config{Server: "http://server", HTTP: &http.Client{Transport: to}})
				if err != nil {
					t.Fatal(err)
				}
				defer server.Close()
				lease := lessor.Lease{WorkerID: "w", TTLMS: 60_000, HeartbeatAfterMS: 20_000}
				p, out := printer.New(server, lease.ID, lease.WorkerID), &printer.Buffer{}
				p.Add(lessor.Stdout, out)
				_, _ = out.Write([]byte("last words"))
				check := func(ctx context.Context) error { return keepAlive(ctx, server, lease) }
				err = rest{p, check, restInterval(lease), restTime}.send(t.Context())
				if took := time.Since(begun); took < c.least || took > c.most || !errors.Is(err, c.want) {
					t.Errorf("it took %s (%v), want %s to %s (%v)", took, err, c.least, c.most, c.want)
				}
				if _, left := out.Read(0, make([]byte, 1)); (left == 0) != c.complete {
					t.Errorf("all of the output was sent: %t, want %t", left == 0, c.complete)
				}
			})
		})
	}
}

// answers is a server: it says how to answer a call, which may have output.
type answers func(output bool) (status int, body string, err error)

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body, err := a(isOutput(r))
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(bytes.NewBufferString(body)), Request: r}, nil
}
