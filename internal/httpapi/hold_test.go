package httpapi

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/token"
)

// held is how a request that was kept open ended: when, and with which status.
type held struct {
	status int
	at     time.Time
}

// poll waits 30 s for work, of which there is none.
func (s *served) poll(edit ...func(*http.Request)) <-chan held {
	ended := make(chan held, 1)
	go func() {
		r, err := s.send(s.t.Context(), "POST", scheduling+"/leases/request", `{"worker_id":"w","wait_ms":30000}`,
			edit...)
		if err != nil {
			s.t.Errorf("poll: %v", err)
			close(ended)
			return
		}
		_ = r.Body.Close()
		ended <- held{r.StatusCode, time.Now()}
	}()
	return ended
}

// ending reads a stream to its end.
func (s *served) ending(edit ...func(*http.Request)) <-chan held {
	ended := make(chan held, 1)
	next := s.follow(s.t.Context(), edit...)
	go func() {
		for next() != "end" {
		}
		ended <- held{at: time.Now()}
	}()
	return ended
}

func TestStreamsAndPollsEndWithTheirToken(t *testing.T) {
	serve(t, func(s *served) {
		t := s.t
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go s.tokens.Run(ctx, func(error) {})
		made, secret, err := token.Issue(token.Ask{Role: new("operator"), ExpiresInSeconds: new(int64(20))},
			lessor.At(time.Now()))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.scheduler.SaveToken(t.Context(), scheduler.Caller{Actor: "test"}, made); err != nil {
			t.Fatal(err)
		}
		s.tokens.Put(made)
		role := decoded(t, s.call("POST", administration+"/tokens", `{"role":"operator"}`, with(s.admin)))
		begun := time.Now()
		deleted := map[string]<-chan held{
			"poll":   s.poll(with(role["token"].(string))),
			"stream": s.ending(with(role["token"].(string))),
		}
		expired := map[string]<-chan held{"poll": s.poll(with(secret)), "stream": s.ending(with(secret))}
		valid := s.poll(with(s.admin))
		tokenless := map[string]<-chan held{"poll": s.poll(), "stream": s.ending()}
		synctest.Wait()
		ends := func(what string, over map[string]<-chan held, since time.Time) {
			t.Helper()
			for kind, c := range over {
				var got held
				select {
				case got = <-c:
				case <-time.After(time.Minute):
					t.Errorf("%s: the %s goes on", what, kind)
					continue
				}
				if d := got.at.Sub(since); d < 0 || d > 5*time.Second || kind == "poll" &&
					got.status != http.StatusUnauthorized {
					t.Errorf("%s: the %s ended with %d, %v after; want 401 within 5 s", what, kind, got.status, d)
				}
			}
		}
		time.Sleep(time.Second)
		if w := s.call("DELETE", administration+"/tokens/"+role["id"].(string), "", with(s.admin)); w.Code != 204 {
			t.Fatalf("delete: %d", w.Code)
		}
		ends("a deleted token", deleted, time.Now())
		ends("an expired token", expired, begun.Add(20*time.Second))
		s.issue("viewer", tenantA)
		ends("no token once there are tenants", tokenless, time.Now())
		if got := <-valid; got.status != http.StatusOK || got.at.Sub(begun) < 30*time.Second {
			t.Errorf("a valid token's poll ended with %d after %v", got.status, got.at.Sub(begun))
		}
	})
}

func TestGuessingTokensIsSlowed(t *testing.T) {
	serve(t, func(s *served) {
		t := s.t
		const path = scheduling + "/status"
		guess := func(from string) int {
			w := s.call("GET", path, "", with(token.NewSecret()), func(r *http.Request) { r.RemoteAddr = from })
			if (w.Code == http.StatusTooManyRequests) != (w.Header().Get("Retry-After") != "") {
				t.Errorf("%d with Retry-After %q", w.Code, w.Header().Get("Retry-After"))
			}
			return w.Code
		}
		for n := range 20 {
			if got := guess("127.0.0.1:1"); got != 401 {
				t.Fatalf("wrong token %d: %d, want 401", n+1, got)
			}
		}
		if got := guess("127.0.0.1:2"); got != 429 {
			t.Errorf("wrong token 21: %d, want 429", got)
		}
		if got := guess("127.0.0.2:1"); got != 401 {
			t.Errorf("another address: %d, want 401", got)
		}
		if w := s.call("GET", path, "", with(s.admin)); w.Code != 200 {
			t.Errorf("a valid token from the guesser's address: %d, want 200", w.Code)
		}
		if w := s.call("GET", path, ""); w.Code != 200 {
			t.Errorf("no token from the guesser's address: %d, want 200", w.Code)
		}
		time.Sleep(time.Minute)
		if got := guess("127.0.0.1:1"); got != 401 {
			t.Errorf("a minute later: %d, want 401", got)
		}
	})
}
