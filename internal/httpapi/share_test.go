package httpapi

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"

	"lessor/internal/quota"
)

// TestPollsAndStreamsHaveASharePerTenant has one tenant hold as many requests open as it gets: others get in.
func TestPollsAndStreamsHaveASharePerTenant(t *testing.T) {
	serve(t, func(s *served) {
		t := s.t
		const places = 8
		s.polls, s.streams = quota.New(places), quota.New(places)
		full, other := s.issue("operator", tenantA), s.issue("operator", tenantB)
		ctx, leave := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer leave()
		// open returns the status of a request that was refused, 0 if it is held open.
		open := func(secret string, method, path, body string) (status int) {
			answered := make(chan int, 1)
			go func() {
				r, err := s.send(ctx, method, scheduling+path, body, with(secret))
				if err != nil {
					return // it was held until the test left
				}
				defer r.Body.Close()
				if r.StatusCode == http.StatusOK {
					<-ctx.Done()
					return
				}
				answered <- r.StatusCode
			}()
			synctest.Wait()
			select {
			case status = <-answered:
			default:
			}
			return status
		}
		for _, c := range []struct{ name, method, path, body string }{
			{"poll", "POST", "/leases/request", `{"worker_id":"w","wait_ms":30000}`},
			{"stream", "GET", "/events", ""},
		} {
			for i := range places {
				want := 0
				if i >= places/2 {
					want = http.StatusTooManyRequests
				}
				if got := open(full, c.method, c.path, c.body); got != want {
					t.Errorf("%s %d of a tenant: %d, want %d", c.name, i+1, got, want)
				}
			}
			for who, secret := range map[string]string{"another tenant": other, "an admin": s.admin} {
				if got := open(secret, c.method, c.path, c.body); got != 0 {
					t.Errorf("%s of %s: %d, want it to be held", c.name, who, got)
				}
			}
		}
	})
}
