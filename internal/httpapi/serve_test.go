package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/token"
)

// answered is what came of a request that was sent in the background.
type answered struct {
	status int
	body   string
	after  time.Duration
	err    error
}

func (s *served) later(method, path, body string) <-chan answered {
	out := make(chan answered, 1)
	begin := time.Now()
	go func() {
		var a answered
		resp, err := s.send(context.Background(), method, path, body)
		if a.err = err; err == nil {
			b, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			a.status, a.body, a.err = resp.StatusCode, string(b), err
		}
		a.after = time.Since(begin)
		out <- a
	}()
	return out
}

func TestLongPollIsAnsweredWhenWorkArrives(t *testing.T) {
	serve(t, func(s *served) {
		t := s.t
		got := s.later("POST", scheduling+"/leases/request", `{"worker_id":"w","wait_ms":30000}`)
		time.Sleep(5 * time.Second)
		if _, _, flight, _ := s.telemetry.APIWindow(time.Now()); flight != 0 || s.polls.Taken() != 1 {
			t.Errorf("in flight %d, held %d; want 0 and 1: a request that waits is no load", flight, s.polls.Taken())
		}
		s.api("POST", "/jobs", `{"type":"x"}`, 201)
		a := <-got
		if a.err != nil || a.status != 200 || !strings.Contains(a.body, `"denied":false`) || a.after < 5*time.Second ||
			a.after > 5100*time.Millisecond {
			t.Errorf("after %v: %d %s %v; want a grant after 5 s", a.after, a.status, a.body, a.err)
		}
		if p95, _, _, n := s.telemetry.APIWindow(time.Now()); p95 > 1000 || n == 0 {
			t.Errorf("p95 is %v of %d requests; the wait must not count", p95, n)
		}
	})
}

func TestLongPollLastsItsWholeWait(t *testing.T) {
	serve(t, func(s *served) {
		t := s.t
		a := <-s.later("POST", scheduling+"/leases/request", `{"worker_id":"w","wait_ms":30000}`)
		if a.err != nil || a.status != 200 || !strings.Contains(a.body, `"no_eligible_job"`) ||
			a.after < 30*time.Second || a.after > 31*time.Second {
			t.Errorf("after %v: %d %s %v; want the last denial after 30 s", a.after, a.status, a.body, a.err)
		}
		if n := s.polls.Taken(); n != 0 {
			t.Errorf("%d requests are still counted as held", n)
		}
	})
}

func TestStoppingEndsWhatOnlyWaits(t *testing.T) {
	serve(t, func(s *served) {
		t := s.t
		poll := s.later("POST", scheduling+"/leases/request", `{"worker_id":"w","wait_ms":30000}`)
		stream := s.later("GET", scheduling+"/events", "")
		time.Sleep(time.Second)
		begin := time.Now()
		if err := s.halt(); err != nil {
			t.Errorf("Serve: %v", err)
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("stopping took %v; nobody had work under way", took)
		}
		if a := <-poll; a.status != 503 || !strings.Contains(a.body, `"unavailable"`) {
			t.Errorf("the long poll got %d %s %v; want 503, so that the worker asks another node", a.status, a.body,
				a.err)
		}
		if a := <-stream; a.err != nil || a.status != 200 {
			t.Errorf("the stream ended with %d %v; want a clean end", a.status, a.err)
		}
	})
}

func TestStoppingFinishesWhatIsUnderWayInBoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			works, takes time.Duration
			cut          bool
		}{{2 * time.Second, 2 * time.Second, false}, {time.Hour, drainTime, true}} {
			ln := newPipes()
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() {
				ended <- Serve(ctx, ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					select {
					case <-time.After(tt.works):
						_, _ = io.WriteString(w, "done")
					case <-r.Context().Done():
					}
				}))
			}()
			conn, err := ln.dial()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn,
				"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			answer := make(chan string, 1)
			go func() {
				b, _ := io.ReadAll(conn)
				answer <- string(b)
			}()
			synctest.Wait()
			begin := time.Now()
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("Serve: %v", err)
			}
			if took := time.Since(begin).Round(time.Second); took != tt.takes {
				t.Errorf("work of %v: stopping took %v, want %v", tt.works, took, tt.takes)
			}
			if got := <-answer; strings.Contains(got, "done") == tt.cut {
				t.Errorf("work of %v: the answer is %q", tt.works, got)
			}
		}
	})
}

func TestSlowClientsAreCutOff(t *testing.T) {
	for _, tt := range []struct {
		name, sent string
		within     time.Duration
	}{
		{"in the headers", "POST " + scheduling + "/jobs HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", headerTime},
		{
			"in the body", "POST " + scheduling + "/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
			readTime + 2*time.Second,
		},
		{"in a body nobody reads", "POST " + scheduling +
			"/drain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{", readTime},
		{"in the body of a read that waits", "GET " + scheduling + "/jobs/" + nowhere +
			"?wait_ms=30000 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{", readTime},
		{"in the body of a stream", "GET " + scheduling +
			"/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{", readTime},
		{"between requests", "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n", idleTime},
	} {
		t.Run(tt.name, func(t *testing.T) {
			serve(t, func(s *served) {
				t := s.t
				conn, err := s.net.dial()
				if err != nil {
					t.Fatal(err)
				}
				closed := make(chan time.Time, 1)
				go func() {
					_, _ = io.Copy(io.Discard, conn)
					closed <- time.Now()
				}()
				begin := time.Now()
				if _, err := io.WriteString(conn, tt.sent); err != nil {
					t.Fatal(err)
				}
				if tt.name != "between requests" {
					for range 200 { // a byte a second, until the server has enough
						time.Sleep(time.Second)
						if _, err := io.WriteString(conn, " "); err != nil {
							break
						}
					}
				}
				select {
				case at := <-closed:
					if took := at.Sub(begin); took > tt.within+time.Second {
						t.Errorf("cut off after %v, want %v", took, tt.within)
					}
				case <-time.After(time.Hour):
					_ = conn.Close()
					t.Error("never cut off")
				}
			})
		})
	}
}

// What net/http refuses before a handler sees it must not harm the server either.
func TestServerSurvivesWhatIsNotHTTP(t *testing.T) {
	for name, sent := range map[string]string{
		"garbage":            "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
		"bad escape in path": "GET " + scheduling + "/jobs/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"no host":            "GET " + scheduling + "/jobs HTTP/1.1\r\n\r\n",
		"two hosts":          "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"two lengths": "POST " + scheduling +
			"/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
		"bad length": "POST " + scheduling + "/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
		"bad chunk": "POST " + scheduling +
			"/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"space in header": "GET / HTTP/1.1\r\nHost : localhost\r\n\r\n",
		"huge header":     "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 64*kib) + "\r\n\r\n",
		"star":            "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, func(s *served) {
				t := s.t
				conn, err := s.net.dial()
				if err != nil {
					t.Fatal(err)
				}
				go func() { _, _ = io.WriteString(conn, sent) }()
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err == nil && (resp.StatusCode >= 500 || resp.StatusCode < 400) {
					t.Errorf("answered %d", resp.StatusCode)
				}
				conn.Close()
				if a := <-s.later("GET", "/health/live", ""); a.status != 200 {
					t.Errorf("afterwards the server answers %d %v", a.status, a.err)
				}
			})
		})
	}
}

func TestBodiesWithoutLengthAreLimitedToo(t *testing.T) {
	serve(t, func(s *served) {
		t := s.t
		chunked := func(r *http.Request) {
			r.Body = io.NopCloser(bytes.NewReader(bytes.Repeat([]byte(" "), 300*kib)))
			r.ContentLength = -1
		}
		resp, err := s.send(t.Context(), "POST", scheduling+"/jobs", "", chunked)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body := readAll(t, resp.Body); resp.StatusCode != http.StatusRequestEntityTooLarge ||
			!strings.Contains(body, "payload_too_large") {
			t.Errorf("got %d %s, want 413", resp.StatusCode, body)
		}
	})
}

// TestAnswersDuringTheStartAreNoLoad: the answers of a server that is starting do not raise the share of errors in the
// busy rating.
func TestAnswersDuringTheStartAreNoLoad(t *testing.T) {
	s := start(t)
	s.scheduler = scheduler.New(nil, testScheduler()) // never run
	refused(t, s.call("POST", scheduling+"/jobs", `{"type":"x"}`, with(s.admin)), 503, lessor.CodeUnavailable)
	s.tokens = token.NewBook(nil) // never read
	refused(t, s.call("GET", scheduling+"/status", "", with(s.admin)), 503, lessor.CodeUnavailable)
	if _, share, flight, n := s.telemetry.APIWindow(time.Now()); share != 0 || flight != 0 || n != 0 {
		t.Errorf("%v of %d requests count as errors, %d in flight", share, n, flight)
	}
}
