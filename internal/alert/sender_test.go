package alert

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hook is a webhook inside a bubble.
type hook struct {
	mu     sync.Mutex
	answer func(n int) (code int, header http.Header) // to the n-th call, from 1; nil = never
	calls  []call
}

type call struct {
	at     time.Time
	body   string
	header http.Header
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if h.answer == nil {
		<-r.Context().Done()
		return
	}
	h.mu.Lock()
	h.calls = append(h.calls, call{time.Now(), string(body), r.Header})
	code, header := h.answer(len(h.calls))
	h.mu.Unlock()
	maps.Copy(w.Header(), header)
	w.WriteHeader(code)
	_, _ = io.WriteString(w, strings.Repeat("x", 1<<20)) // the sender does not read it
}

// seen returns the calls so far.
func (h *hook) seen() []call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

func always(code int) func(int) (int, http.Header) {
	return func(int) (int, http.Header) { return code, nil }
}

// drops collects the alerts that a sender dropped.
type drops struct {
	mu  sync.Mutex
	ids []string
	err error
}

func (d *drops) add(id string, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ids, d.err = append(d.ids, id), why
}

// inBubble runs a sender against a hook over pipes, in a bubble with its own time.
func inBubble(t *testing.T, h *hook, c Config, test func(s *Sender, d *drops)) {
	synctest.Test(t, func(t *testing.T) {
		d := &drops{}
		c.Webhook, c.AllowHosts, c.Dropped = "http://hook.test/in?key=hidden", []string{"hook.test"}, d.add
		s, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		conns := make(chan net.Conn)
		server := &http.Server{Handler: h, ReadHeaderTimeout: time.Second}
		var running sync.WaitGroup
		running.Go(func() { _ = server.Serve(pipes{conns, ctx.Done()}) })
		transport, _ := s.client.Transport.(*http.Transport)
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			select {
			case conns <- far:
				return near, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		running.Go(func() { s.Run(ctx) })
		test(s, d)
		stop()
		_ = server.Close()
		running.Wait()
	})
}

// pipes is a listener that returns the far ends of pipes.
type pipes struct {
	conns <-chan net.Conn
	over  <-chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func TestAlertIsPostedAndSigned(t *testing.T) {
	h := &hook{answer: always(http.StatusNoContent)}
	inBubble(t, h, Config{Secret: "key"}, func(s *Sender, d *drops) {
		s.Send("alert-1", []byte(`{"kind":"stale"}`))
		synctest.Wait()
		if len(h.seen()) != 1 || h.seen()[0].body != `{"kind":"stale"}` {
			t.Fatalf("the hook saw %v", h.seen())
		}
		header := h.seen()[0].header
		// echo -n '{"kind":"stale"}' | openssl dgst -sha256 -hmac key
		want := "sha256=780e2f54ff6c33ac96b96a500487120a1751dfb2ce060cf081e1f1ed93353cf6"
		if got := header.Get("X-Lessor-Signature"); got != want {
			t.Errorf("signature %s, want %s", got, want)
		}
		// echo -n '{"kind":"stale"}' | sha256sum
		if header.Get("X-Lessor-Delivery") != "alert-1-004df8a08ab8fbc9" ||
			header.Get("Content-Type") != "application/json" {
			t.Errorf("headers %v", header)
		}
		time.Sleep(2 * time.Hour)
		if len(h.seen()) != 1 || len(d.ids) != 0 {
			t.Errorf("%d calls and drops %v after it was delivered", len(h.seen()), d.ids)
		}
	})
}

func TestAlertWithoutSecretIsUnsigned(t *testing.T) {
	h := &hook{answer: always(http.StatusOK)}
	inBubble(t, h, Config{}, func(s *Sender, _ *drops) {
		s.Send("a", []byte("{}"))
		synctest.Wait()
		if len(h.seen()) != 1 || h.seen()[0].header["X-Lessor-Signature"] != nil {
			t.Errorf("the hook saw %v", h.seen())
		}
	})
}

func TestFailuresAreTriedAgainForAnHour(t *testing.T) {
	for _, code := range []int{
		http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusTooManyRequests,
	} {
		h := &hook{answer: always(code)}
		inBubble(t, h, Config{}, func(s *Sender, d *drops) {
			start := time.Now()
			s.Send("a", []byte("{}"))
			time.Sleep(59 * time.Minute)
			synctest.Wait()
			n := len(h.seen())
			if n < 15 || n > 40 {
				t.Errorf("%d: %d attempts in an hour", code, n)
			}
			for i := 2; i < n; i++ {
				wait := h.seen()[i].at.Sub(h.seen()[i-1].at)
				if most := min(maxWait, firstWait<<i); wait > most || wait < most/8 {
					t.Errorf("%d: %v between attempts %d and %d", code, wait, i, i+1)
				}
			}
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			if last := h.seen()[len(h.seen())-1].at.Sub(start); last > time.Hour {
				t.Errorf("%d: an attempt after %v", code, last)
			}
			if len(d.ids) != 1 || !strings.Contains(d.err.Error(), "answered") {
				t.Errorf("%d: dropped %v: %v", code, d.ids, d.err)
			}
		})
	}
}

func TestDeliveryAfterFailures(t *testing.T) {
	h := &hook{answer: func(n int) (int, http.Header) {
		if n <= 3 {
			return http.StatusBadGateway, nil
		}
		return http.StatusOK, nil
	}}
	inBubble(t, h, Config{}, func(s *Sender, d *drops) {
		s.Send("a", []byte("{}"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(h.seen()) != 4 || len(d.ids) != 0 {
			t.Errorf("%d calls, dropped %v", len(h.seen()), d.ids)
		}
	})
}

func TestRefusedAlertIsNotTriedAgain(t *testing.T) {
	for _, code := range []int{
		http.StatusBadRequest, http.StatusUnauthorized, http.StatusGone, http.StatusFound, http.StatusNotModified,
	} {
		h := &hook{answer: func(int) (int, http.Header) {
			return code, http.Header{"Location": {"http://hook.test/other"}}
		}}
		inBubble(t, h, Config{}, func(s *Sender, d *drops) {
			s.Send("a", []byte("{}"))
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			if len(h.seen()) != 1 || len(d.ids) != 1 {
				t.Errorf("%d: %d calls, dropped %v", code, len(h.seen()), d.ids)
			}
		})
	}
}

func TestRetryAfterIsHonouredWithinBounds(t *testing.T) {
	for _, c := range []struct {
		header      func(now time.Time) string
		least, most time.Duration
	}{
		{func(time.Time) string { return "120" }, 2 * time.Minute, 2 * time.Minute},
		{
			func(now time.Time) string { return now.Add(time.Minute).UTC().Format(http.TimeFormat) }, 59 * time.Second,
			time.Minute,
		},
		{func(time.Time) string { return "86400" }, maxRetryAfter, maxRetryAfter},
		{func(time.Time) string { return "99999999999999" }, 0, firstWait},
		{func(time.Time) string { return "-5" }, 0, firstWait},
		{func(time.Time) string { return "soon" }, 0, firstWait},
	} {
		h := &hook{answer: func(n int) (int, http.Header) {
			if n > 1 {
				return http.StatusOK, nil
			}
			return http.StatusServiceUnavailable, http.Header{"Retry-After": {c.header(time.Now())}}
		}}
		inBubble(t, h, Config{}, func(s *Sender, _ *drops) {
			s.Send("a", []byte("{}"))
			time.Sleep(time.Hour)
			synctest.Wait()
			if len(h.seen()) != 2 {
				t.Fatalf("%d calls", len(h.seen()))
			}
			if wait := h.seen()[1].at.Sub(h.seen()[0].at); wait < c.least || wait > c.most {
				t.Errorf("waited %v, want %v to %v", wait, c.least, c.most)
			}
		})
	}
}

func TestOneThatFailsDoesNotHoldTheOthers(t *testing.T) {
	h := &hook{}
	h.answer = func(n int) (int, http.Header) {
		if h.calls[n-1].body == "bad" {
			return http.StatusInternalServerError, nil
		}
		return http.StatusOK, nil
	}
	inBubble(t, h, Config{}, func(s *Sender, d *drops) {
		s.Send("a", []byte("bad"))
		s.Send("b", []byte("good"))
		synctest.Wait()
		if len(h.seen()) != 2 || h.seen()[1].body != "good" || len(d.ids) != 0 {
			t.Errorf("the hook saw %v, dropped %v", h.seen(), d.ids)
		}
	})
}

// TestClearedAlertIsNotRaisedAgain clears an alert while its raise waits for another attempt, and while it is tried.
func TestClearedAlertIsNotRaisedAgain(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration // from the raise to the clear
	}{
		{"while the raise waits", 30 * time.Second},
		{"while the raise is tried", time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := &hook{answer: func(n int) (int, http.Header) {
				if n > 1 {
					return http.StatusOK, nil
				}
				time.Sleep(5 * time.Second)
				return http.StatusInternalServerError, http.Header{"Retry-After": {"120"}}
			}}
			inBubble(t, h, Config{}, func(s *Sender, d *drops) {
				s.Send("a", []byte("raised"))
				time.Sleep(tt.after)
				s.Send("a", []byte("cleared"))
				time.Sleep(2 * time.Hour)
				var bodies []string
				for _, c := range h.seen() {
					bodies = append(bodies, c.body)
				}
				if !slices.Equal(bodies, []string{"raised", "cleared"}) || len(d.ids) != 0 {
					t.Errorf("the hook saw %v, dropped %v", bodies, d.ids)
				}
			})
		})
	}
}

// TestReplacedAlertIsNotDropped has the hook refuse a raise for good after the alert was cleared.
func TestReplacedAlertIsNotDropped(t *testing.T) {
	h := &hook{answer: func(n int) (int, http.Header) {
		if n > 1 {
			return http.StatusOK, nil
		}
		time.Sleep(5 * time.Second)
		return http.StatusBadRequest, nil
	}}
	inBubble(t, h, Config{}, func(s *Sender, d *drops) {
		s.Send("a", []byte("raised"))
		time.Sleep(time.Second)
		s.Send("a", []byte("cleared"))
		time.Sleep(time.Minute)
		if len(h.seen()) != 2 || len(d.ids) != 0 {
			t.Errorf("%d calls, dropped %v: %v", len(h.seen()), d.ids, d.err)
		}
	})
}

func TestWhatAnAlertSaysHasItsOwnDeliveryID(t *testing.T) {
	h := &hook{answer: func(n int) (int, http.Header) {
		if n == 1 {
			return http.StatusInternalServerError, nil
		}
		return http.StatusOK, nil
	}}
	inBubble(t, h, Config{}, func(s *Sender, _ *drops) {
		for _, says := range []string{"raised", "restated", "restated again", "cleared"} {
			s.Send("a", []byte(says))
			time.Sleep(time.Minute)
		}
		bodies := map[string]string{}
		for _, c := range h.seen() {
			id := c.header.Get("X-Lessor-Delivery")
			if before, again := bodies[id]; again && before != c.body {
				t.Errorf("%q and %q have the same id %q", before, c.body, id)
			}
			bodies[id] = c.body
		}
		if len(h.seen()) != 5 || len(bodies) != 4 {
			t.Errorf("%d calls have %d ids, want 5 with 4: %v", len(h.seen()), len(bodies), bodies)
		}
	})
}

func TestFullQueueTakesTheClearOfAnAlertThatWaits(t *testing.T) {
	h := &hook{answer: func(n int) (int, http.Header) {
		if n <= 2 {
			return http.StatusInternalServerError, nil
		}
		return http.StatusOK, nil
	}}
	inBubble(t, h, Config{Waiting: 2}, func(s *Sender, d *drops) {
		for _, id := range []string{"a", "b"} {
			s.Send(id, []byte("raised"))
		}
		synctest.Wait()
		s.Send("a", []byte("cleared"))
		time.Sleep(time.Minute)
		if got := h.seen(); len(got) != 4 || got[2].body != "cleared" || len(d.ids) != 0 {
			t.Errorf("the hook saw %v, dropped %v", got, d.ids)
		}
	})
}

func TestSilentHookIsGivenUpInTime(t *testing.T) {
	inBubble(t, &hook{}, Config{Timeout: time.Second, RetryFor: time.Minute}, func(s *Sender, d *drops) {
		s.Send("a", []byte("{}"))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(d.ids) != 1 || !errors.Is(d.err, context.DeadlineExceeded) {
			t.Errorf("dropped %v: %v", d.ids, d.err)
		}
	})
}

func TestWaitingIsBounded(t *testing.T) {
	h := &hook{answer: always(http.StatusInternalServerError)}
	inBubble(t, h, Config{Waiting: 3}, func(s *Sender, d *drops) {
		for _, id := range []string{"a", "b", "c", "d"} {
			s.Send(id, []byte("{}"))
		}
		if len(d.ids) != 1 || d.ids[0] != "d" || !errors.Is(d.err, ErrFull) {
			t.Errorf("dropped %v: %v", d.ids, d.err)
		}
		s.Send("long", make([]byte, maxBody+1))
		if len(d.ids) != 2 || !errors.Is(d.err, ErrTooLong) {
			t.Errorf("dropped %v: %v", d.ids, d.err)
		}
	})
}

func TestStopDropsWhatWaits(t *testing.T) {
	h := &hook{answer: always(http.StatusInternalServerError)}
	var left *drops
	inBubble(t, h, Config{}, func(s *Sender, d *drops) {
		s.Send("a", []byte("{}"))
		s.Send("b", []byte("{}"))
		synctest.Wait()
		left = d
	})
	if len(left.ids) != 2 || !errors.Is(left.err, ErrStopped) {
		t.Errorf("dropped %v: %v", left.ids, left.err)
	}
}

func TestAlertAfterTheStopIsDropped(t *testing.T) {
	d := &drops{}
	s, err := New(Config{Webhook: "https://hook.test/in", Dropped: d.add})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	s.Run(ctx)
	s.Send("late", []byte("{}"))
	if len(d.ids) != 1 || d.ids[0] != "late" || !errors.Is(d.err, ErrStopped) {
		t.Errorf("dropped %v: %v; want the alert that was sent after Run had ended", d.ids, d.err)
	}
}
