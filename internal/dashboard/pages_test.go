package dashboard

import (
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"lessor"
)

func TestEveryPageShowsWhatThereIs(t *testing.T) {
	w := start(t).world()
	admin := w.as(w.admin)
	for path, wants := range map[string][]string{
		"/": {
			"<strong>4</strong> of 95 usable units", "no worker asks for thumbnail.make", "video.encode",
			`<span class="num">1</span> <span class="quiet">with heartbeats`,
		},
		"/jobs":                            {"video.encode", "mail.send", "monthly"},
		"/jobs?type=mail.send":             {"mail.send"},
		"/jobs/" + w.running.ID.String():   {"encoder-7", "42 %", "frame 4200 of 10000", "data-until="},
		"/jobs/" + w.failed.ID.String():    {"connection refused by smtp.example.org", "Retry"},
		"/jobs/" + w.done.ID.String():      {"2026-10", "r.pdf"},
		"/jobs/" + w.queued.ID.String():    {"Why is it not running", "no_worker"},
		"/leases":                          {"encoder-7", "video.encode", "s-running"},
		"/workers":                         {"encoder-7", "test-agent/1.0"},
		"/schedules":                       {"nightly-invoices", "every 1 h", "closed"},
		"/schedules/nightly-invoices":      {"Next ticks", "from"},
		"/runs":                            {"SUCCESS", "FAILED", "connection refused"},
		"/runs?trace_id=" + w.done.TraceID: {w.done.ID.String()},
		"/tenants":                         {tenantA, tenantB},
		"/recovery":                        {"node-1", "No command runs"},
		"/audit":                           {"nightly-invoices"},
		"/jobs/bulk?action=cancel&type=thumbnail.make": {"<strong>3</strong> jobs match"},
	} {
		status, page := admin.get(path)
		if status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
		has(t, page, wants...)
		if strings.Contains(page, "<no value>") || strings.Contains(page, "%!") {
			t.Errorf("%s shows a value that it has not got:\n%s", path, page)
		}
	}
}

func TestEmptyPagesSayWhatToTypeNext(t *testing.T) {
	s := start(t)
	admin := s.as(s.admin)
	for _, path := range []string{"/", "/jobs", "/leases", "/workers", "/schedules", "/runs", "/tenants", "/recovery"} {
		status, page := admin.get(path)
		if status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
		has(t, page, `class="empty"`, "<pre>")
	}
}

func TestUnknownAddressIsAPageForBrowsersAlone(t *testing.T) {
	s := start(t)
	for _, c := range []struct {
		path, accept string
		page         bool
	}{
		{"/nothing", "text/html,application/xhtml+xml,*/*;q=0.8", true},
		{"/jobs/", "text/html", true},
		{"/nothing", "*/*", false},
		{"/api/system/scheduler/nothing", "text/html", false},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", c.accept)
		v := s.visitor()
		status, page := v.read(v.Do(r))
		wayBack := strings.Contains(page, "There is no page at this address.") && strings.Contains(page,
			`<a class="button" href="/">`)
		if status != http.StatusNotFound || wayBack != c.page || strings.Contains(page, `"route_not_found"`) == c.page {
			t.Errorf("%s for %q: %d\n%s", c.path, c.accept, status, page)
		}
	}
}

// TestLinksLeadToPages follows every link of every page, also of ticks that an open circuit refused.
func TestLinksLeadToPages(t *testing.T) {
	s := start(t)
	s.defineFragile(1, 3600)
	s.finish(s.waitLease("fragile.run"), "failed", "broken")
	w := s.world()
	v := w.as(w.admin)
	page := ""
	refused := func() bool { return strings.Contains(page, "CIRCUIT_OPEN</bdi>") }
	for deadline := time.Now().Add(time.Minute); !refused(); time.Sleep(50 * time.Millisecond) {
		if _, page = v.get("/runs?job_id=fragile"); time.Now().After(deadline) {
			t.Fatal("no tick was refused by the open circuit")
		}
	}
	seen := map[string]bool{}
	for _, path := range append(w.paths(), "/schedules/fragile", "/runs?job_id=fragile") {
		_, page := v.get(path)
		for _, m := range links.FindAllStringSubmatch(page, -1) {
			to := html.UnescapeString(m[1])
			if seen[to] || !strings.HasPrefix(to, "/") {
				continue
			}
			seen[to] = true
			if status, _ := v.get(to); status != http.StatusOK {
				t.Errorf("%s links to %s, which is answered %d", path, to, status)
			}
		}
	}
}

var links = regexp.MustCompile(`<a [^>]*href="([^"]*)"`)

// waitLease waits for a job of a type.
func (s *server) waitLease(typ string) lessor.Grant {
	s.t.Helper()
	grants, denial, err := s.scheduler.Request(s.t.Context(), tester, lessor.LeaseRequest{
		WorkerID: new("w"), Types: []string{typ}, WaitMS: new(int64(30_000)),
	})
	if err != nil || denial != nil {
		s.t.Fatalf("request: %v %v", denial, err)
	}
	return grants[0]
}

func TestSchedulesShowWhatBecameOfTheirTicks(t *testing.T) {
	s := start(t)
	s.define("quick", "quick.run", 1)
	v := s.visitor()
	page := ""
	shown := func() bool { return strings.Contains(page, "t-queued") && strings.Contains(page, "t-skipped") }
	for deadline := time.Now().Add(60 * time.Second); !shown(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no tick has a job that is queued, or none was skipped for it:\n%s", page)
		}
		_, page = v.get("/schedules")
	}
	_, page = v.get("/schedules/quick")
	has(t, page, `s-fired`, "Next ticks", "/jobs/")
}
