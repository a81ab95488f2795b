package openai_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lessor/agent"
	"lessor/agent/openai"
	"lessor/lessortest"
	"lessor/worker"
)

func withCause(t *testing.T, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(t.Context(), d, cause)
}

func TestTransientFailuresAreTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		first       http.HandlerFunc
		least, most time.Duration // the pause
	}{
		"429": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
			500 * time.Millisecond, time.Second,
		},
		"429 with seconds": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "20")
			w.WriteHeader(http.StatusTooManyRequests)
		}, 20 * time.Second, 20 * time.Second},
		"503 with a date": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", time.Now().UTC().Add(30*time.Second).Format(http.TimeFormat))
			w.WriteHeader(http.StatusServiceUnavailable)
		}, 30 * time.Second, 30 * time.Second},
		"429 for a day": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(http.StatusTooManyRequests)
		}, 2 * time.Minute, 2 * time.Minute},
		"429 for a thousand years": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "31536000000")
			w.WriteHeader(http.StatusTooManyRequests)
		}, 2 * time.Minute, 2 * time.Minute},
		"500": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
		}, 500 * time.Millisecond, time.Second},
		"cut stream": {
			func(w http.ResponseWriter, _ *http.Request) { stream(w, hello) },
			500 * time.Millisecond, time.Second,
		},
		"done without an end": {
			func(w http.ResponseWriter, _ *http.Request) { stream(w, hello, "[DONE]") },
			500 * time.Millisecond, time.Second,
		},
		"stream cut inside a part": {
			func(w http.ResponseWriter, _ *http.Request) {
				stream(w, hello)
				io.WriteString(w, "data: "+lo[:len(lo)/2])
			},
			500 * time.Millisecond, time.Second,
		},
		"answer cut inside": {
			func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, hello[:len(hello)/2]) },
			500 * time.Millisecond, time.Second,
		},
		"error in the stream": {
			func(w http.ResponseWriter, _ *http.Request) {
				stream(w, hello, `{"error":{"message":"overloaded"}}`)
			}, 500 * time.Millisecond,
			time.Second,
		},
		"nothing": {
			func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 5 * time.Minute,
			5*time.Minute + time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var tries atomic.Int64
				a := adapter(t, func(w http.ResponseWriter, r *http.Request) {
					if tries.Add(1) == 1 {
						c.first(w, r)
						return
					}
					if body, err := io.ReadAll(r.Body); err != nil || !strings.Contains(string(body), `"Hi"`) {
						t.Errorf("asked again with %q, err %v", body, err)
					}
					stream(w, hello, lo, stop, "[DONE]")
				}, openai.Config{})
				began := time.Now()
				got, err := a.Complete(t.Context(), question)
				if took := time.Since(began); err != nil || got.Text != "Hello" || tries.Load() != 2 ||
					took < c.least || took > c.most {
					t.Errorf("%q after %d tries and %s, err %v; want Hello after 2 and %s to %s",
						got.Text, tries.Load(), took, err, c.least, c.most)
				}
			})
		})
	}
}

func TestPermanentFailuresAreNotTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"400": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no such model", http.StatusBadRequest)
		}, "400 Bad Request: no such model"},
		"token limit": {func(w http.ResponseWriter, _ *http.Request) {
			stream(w, hello, `{"choices":[{"delta":{},"finish_reason":"length"}]}`, "[DONE]")
		}, "end of its tokens"},
		"filter": {func(w http.ResponseWriter, _ *http.Request) {
			stream(w, `{"choices":[{"delta":{},"finish_reason":"content_filter"}]}`, "[DONE]")
		}, "withheld"},
		"no JSON": {func(w http.ResponseWriter, _ *http.Request) { stream(w, "Hello") }, "decode answer"},
		"too long": {func(w http.ResponseWriter, _ *http.Request) {
			for range 20 {
				stream(w, `{"choices":[{"delta":{"content":"`+strings.Repeat("x", 1<<20)+`"}}]}`)
			}
		}, "longer than 16 MiB"},
		"wild indexes": {func(w http.ResponseWriter, _ *http.Request) {
			stream(w, `{"choices":[{"delta":{"tool_calls":[{"index":1000000}]}}]}`)
		}, "tool number 1000000"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				a := adapter(t, func(w http.ResponseWriter, r *http.Request) { tries++; c.answer(w, r) },
					openai.Config{})
				if _, err := a.Complete(t.Context(), question); err == nil || !strings.Contains(err.Error(), c.says) ||
					tries != 1 {
					t.Errorf("err %v after %d tries, want %q after one", err, tries, c.says)
				}
			})
		})
	}
}

func TestTriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		a := adapter(t, func(w http.ResponseWriter, _ *http.Request) { tries++; w.WriteHeader(http.StatusBadGateway) },
			openai.Config{})
		if _, err := a.Complete(t.Context(), question); err == nil || tries != 4 {
			t.Errorf("err %v after %d tries, want 4", err, tries)
		}
	})
}

func TestPauseEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("the caller is gone")
		a := adapter(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
		}, openai.Config{})
		ctx, cancel := withCause(t, time.Second, gone)
		defer cancel()
		if _, err := a.Complete(ctx, question); !errors.Is(err, gone) {
			t.Errorf("err %v", err)
		}
	})
}

// TestProviderThatAsksToWaitCostsNoLease has a provider ask three times for a pause of two minutes. A job's lease lasts
// for one minute unless its worker is told otherwise.
func TestProviderThatAsksToWaitCostsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		a := adapter(t, func(w http.ResponseWriter, _ *http.Request) {
			if tries++; tries < 4 {
				w.Header().Set("Retry-After", "120")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			stream(w, hello, lo, stop, "[DONE]")
		}, openai.Config{})
		last, longest := time.Now(), time.Duration(0)
		q := question
		q.Beat = func() { longest, last = max(longest, time.Since(last)), time.Now() }
		if _, err := a.Complete(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		if longest > 10*time.Second {
			t.Errorf("no beat for %s, want one every 10 s", longest)
		}
	})
}

// TestJobKeepsItsLeaseWhileTheProviderAsksToWait runs an agent in a handler of a worker, with the default ttl.
func TestJobKeepsItsLeaseWhileTheProviderAsksToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := lessortest.Start(t)
		tries := 0
		a := adapter(t, func(w http.ResponseWriter, _ *http.Request) {
			if tries++; tries == 1 {
				w.Header().Set("Retry-After", "90")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			stream(w, hello, lo, stop, "[DONE]")
		}, openai.Config{})
		tools, err := agent.NewExecutor(agent.ExecutorConfig{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := worker.New(worker.Config{Client: s.Client(), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		worker.Handle(w, "ask", func(ctx context.Context, job *worker.Job[struct{}]) (any, error) {
			in := &agent.Inner{Adapter: a, Executor: tools}
			r, err := in.Run(ctx, question.Turns, agent.Vitals{Heartbeat: job.Heartbeat()})
			return r.Text, err
		})
		defer s.Run(w)()
		j := s.WaitForEnd(s.Submit("ask", struct{}{}))
		if j.State != "completed" || j.Attempt != 1 || string(j.Result) != `"Hello"` {
			t.Errorf("the job is %s after attempt %d with %s, want completed after 1", j.State, j.Attempt, j.Result)
		}
	})
}
