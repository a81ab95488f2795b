package dashboard

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// part asks for the changing part of a page, as its script does. It returns the status and the number of bytes that
// were sent too.
func (v *visitor) part(path, version string) (sent liveAnswer, status, size int) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.url+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set(liveHeader, version)
	r.Header.Set("Accept-Encoding", "gzip")
	answer, err := v.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer answer.Body.Close()
	packed, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	if answer.StatusCode == http.StatusOK {
		if answer.Header.Get("Content-Encoding") != "gzip" {
			v.t.Fatalf("%s: the part is not compressed", path)
		}
		body, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			v.t.Fatal(err)
		}
		if err := json.NewDecoder(body).Decode(&sent); err != nil {
			v.t.Fatal(err)
		}
	}
	if _, err := strconv.Atoi(answer.Header.Get(nowHeader)); err != nil && answer.StatusCode < 300 {
		v.t.Errorf("%s: the answer does not say what time it is: %v", path, err)
	}
	return sent, answer.StatusCode, len(packed)
}

// whole asks for all of a changing part.
func (v *visitor) whole(path string) string {
	v.t.Helper()
	sent, status, _ := v.part(path, "0")
	if status != http.StatusOK {
		v.t.Fatalf("%s: %d", path, status)
	}
	return apply(sent, nil)
}

// apply makes a part from its pieces and the part before it.
func apply(sent liveAnswer, old []string) string {
	var lines []string
	for _, p := range sent.Pieces {
		switch p := p.(type) {
		case string:
			lines = append(lines, p)
		case []any:
			from, n := int(p[0].(float64)), int(p[1].(float64))
			lines = append(lines, old[from:from+n]...)
		}
	}
	return strings.Join(lines, "\n")
}

// TestPagesAreSentOnlyWhatChanged follows a list of 50 jobs of which one changes. Ages are not a change.
func TestPagesAreSentOnlyWhatChanged(t *testing.T) {
	s := start(t)
	for range pageSize {
		s.submit(lessor.Submission{Type: new("a.job")})
	}
	v := s.as(s.admin)
	first, _, all := v.part("/jobs", "0")
	s.age()
	if _, status, n := v.part("/jobs", first.Version); status != http.StatusNoContent || n != 0 {
		t.Errorf("a second later, nothing has changed: %d with %d bytes, want 204", status, n)
	}
	s.lease("w-1", "a.job")
	s.age()
	second, status, some := v.part("/jobs", first.Version)
	if status != http.StatusOK || some > all/3 || some > 600 {
		t.Errorf("one row of %d has changed: %d with %d bytes after %d for the whole list", pageSize, status, some, all)
	}
	want := v.whole("/jobs")
	if got := apply(second, strings.Split(apply(first, nil), "\n")); got != want {
		t.Errorf("the pieces give\n%s\nwant\n%s", got, want)
	}
	if page, status, _ := v.part("/jobs", "unknown"); status != http.StatusOK || apply(page, nil) != want {
		t.Errorf("a page with a version that the server does not know gets %d, want the whole part", status)
	}
}

// age makes the parts in the cache so old that they are rendered again.
func (s *server) age() {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	for _, p := range s.cache.all {
		p.since = p.since.Add(-liveAtLeast)
	}
}

func TestPiecesGiveTheLines(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	text := func() []string {
		lines := make([]string, 1+dice.IntN(30))
		for i := range lines {
			lines[i] = strconv.Itoa(dice.IntN(12))
		}
		return lines
	}
	for range 2000 {
		old, next := text(), text()
		raw, err := json.Marshal(liveAnswer{Pieces: pieces(old, next)})
		var sent liveAnswer
		if err != nil || json.Unmarshal(raw, &sent) != nil {
			t.Fatal(err)
		}
		if got, want := apply(sent, old), strings.Join(next, "\n"); got != want {
			t.Fatalf("%v from %v is sent as %s, which gives\n%s", next, old, raw, got)
		}
	}
}

// TestClosedSessionsAreRefused: the script of an open page is not redirected to the login, whose page it could take for
// an answer.
func TestClosedSessionsAreRefused(t *testing.T) {
	s := start(t, required)
	if _, status, _ := s.visitor().part("/jobs", "0"); status != http.StatusUnauthorized {
		t.Errorf("without a session a part is answered %d, want 401", status)
	}
}

// TestSharedPartsKeepRightsApart requests the same page several times at once: only visitors with the same rights share
// an answer.
func TestSharedPartsKeepRightsApart(t *testing.T) {
	w := start(t).world()
	admin, viewer, bound := w.as(w.admin), w.as(w.issue("viewer", "")), w.as(w.issue("viewer", tenantB))
	has(t, admin.whole("/leases"), "Revoke", "encoder-7")
	if page := viewer.whole("/leases"); strings.Contains(page, "Revoke") || !strings.Contains(page, "encoder-7") {
		t.Error("a viewer is given an admin's page")
	}
	if page := bound.whole("/leases"); strings.Contains(page, "encoder-7") {
		t.Error("a tenant is given a page of all tenants")
	}
}

func TestPartsAreMadeOnceForAll(t *testing.T) {
	var c cache
	made := 0
	render := func() ([]byte, error) { made++; return []byte("x"), nil }
	for range 200 {
		if _, err := c.get("a", 0, render); err != nil {
			t.Fatal(err)
		}
	}
	if made != 1 {
		t.Errorf("made %d times, want once", made)
	}
	for _, p := range c.all {
		p.since = p.since.Add(-liveEvery)
	}
	if _, err := c.get("a", 0, render); err != nil || made != 1 {
		t.Errorf("without a commit a part is made again after a second: made %d times, %v", made, err)
	}
	if _, err := c.get("a", 1, render); err != nil || made != 2 {
		t.Errorf("after a commit the old part is given: made %d times, %v", made, err)
	}
	for _, p := range c.all {
		p.since = p.since.Add(-liveAtLeast)
	}
	if _, err := c.get("a", 1, render); err != nil || made != 3 {
		t.Errorf("other nodes commit too, but an old part is given: made %d times, %v", made, err)
	}
	for i := range 2 * maxParts {
		if _, err := c.get(string(rune(i+1000)), 0, render); err != nil {
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
			p, err := c.get(strconv.Itoa(i), 0, func() ([]byte, error) { return large, nil })
			if err != nil || len(p.lines[0]) != len(large) {
				t.Fatalf("part %d: %v", i, err)
			}
		}
		if c.bytes > maxPartBytes || len(c.all) != 4 {
			t.Errorf("%d parts with %d bytes are kept, want the 4 that fit", len(c.all), c.bytes)
		}
		time.Sleep(partsKept + liveEvery)
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
