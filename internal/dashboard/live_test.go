package dashboard

import (
	"bufio"
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// part asks for the changing part of a page, as its script does.
func (v *visitor) part(path string) string {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.url+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set(liveHeader, "1")
	status, body := v.read(v.Do(r))
	if status != http.StatusOK {
		v.t.Fatalf("%s: %d %s", path, status, body)
	}
	return body
}

func TestStreamTellsOfACommitSoon(t *testing.T) {
	s := start(t)
	ctx, stop := context.WithTimeout(t.Context(), liveAtLeast-time.Second) // before it would speak without a reason
	defer stop()
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/live", nil)
	answer, err := s.visitor().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Scan() // the stream is open
	s.submit(lessor.Submission{Type: new("x")})
	for lines.Scan() {
		if lines.Text() == "event: changed" {
			return
		}
	}
	t.Fatalf("the stream did not tell of a commit: %v", lines.Err())
}

func TestStreamsAreBounded(t *testing.T) {
	s := start(t)
	for s.streams.Enter(nil, 1) {
	}
	taken := s.streams.Taken()
	if taken != maxStreams/2 {
		t.Errorf("callers without a tenant hold %d streams, want half of all, %d", taken, maxStreams/2)
	}
	if status, _ := s.visitor().get("/live"); status != http.StatusTooManyRequests {
		t.Errorf("one stream too many is answered %d, want 429", status)
	}
	if n := s.streams.Taken(); n != taken {
		t.Errorf("a refused stream is counted: %d", n)
	}
}

// TestSharedPartsKeepRightsApart requests the same page several times at once: only visitors with the same rights share
// an answer.
func TestSharedPartsKeepRightsApart(t *testing.T) {
	w := start(t).world()
	admin, viewer, bound := w.as(w.admin), w.as(w.issue("viewer", "")), w.as(w.issue("viewer", tenantB))
	has(t, admin.part("/leases"), "Revoke", "encoder-7")
	if page := viewer.part("/leases"); strings.Contains(page, "Revoke") || !strings.Contains(page, "encoder-7") {
		t.Error("a viewer is given an admin's page")
	}
	if page := bound.part("/leases"); strings.Contains(page, "encoder-7") {
		t.Error("a tenant is given a page of all tenants")
	}
}

func TestPartsAreMadeOnceForAll(t *testing.T) {
	var c cache
	made := 0
	render := func() ([]byte, error) { made++; return []byte("x"), nil }
	for range 200 {
		if _, err := c.get("a", render); err != nil {
			t.Fatal(err)
		}
	}
	if made != 1 {
		t.Errorf("made %d times, want once", made)
	}
	for _, p := range c.all {
		p.since = p.since.Add(-liveEvery)
	}
	if _, err := c.get("a", render); err != nil || made != 2 {
		t.Errorf("a part that is old is given again: made %d times, %v", made, err)
	}
	for i := range 2 * maxParts {
		if _, err := c.get(string(rune(i+1000)), render); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.all) > maxParts {
		t.Errorf("%d parts are kept, %d is the limit", len(c.all), maxParts)
	}
}

func TestPartsExpireAndAreBoundedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c cache
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go c.expire(ctx)
		large := make([]byte, maxPartBytes/4)
		for i := range 6 {
			body, err := c.get(strconv.Itoa(i), func() ([]byte, error) { return large, nil })
			if err != nil || len(body) != len(large) {
				t.Fatalf("part %d: %d bytes, %v", i, len(body), err)
			}
		}
		if c.bytes > maxPartBytes || len(c.all) != 4 {
			t.Errorf("%d parts with %d bytes are kept, want the 4 that fit", len(c.all), c.bytes)
		}
		time.Sleep(2 * liveEvery)
		synctest.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.all) != 0 || c.bytes != 0 {
			t.Errorf("%d parts with %d bytes are kept although nobody looks at them", len(c.all), c.bytes)
		}
	})
}

func TestBulkPlacesHaveShares(t *testing.T) {
	b := newBulks()
	begin := func(tenant *lessor.TenantID) (n int) {
		for {
			if _, err := b.add(&bulk{caller: scheduler.Caller{Tenant: tenant}}); err != nil {
				return n
			}
			n++
		}
	}
	one, other := tenant(tenantA), tenant(tenantB)
	if n := begin(&one); n != bulkWaiting/2 {
		t.Errorf("a tenant began %d operations, want half of all, %d", n, bulkWaiting/2)
	}
	if n := begin(&other); n == 0 {
		t.Error("another tenant finds no place")
	}
}
