package dashboard

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"lessor"
	"lessor/internal/httpapi"
	"lessor/internal/token"
)

func required(c *httpapi.Config) { c.AuthRequired = true }

func TestStrangersAreLedToTheLogin(t *testing.T) {
	w := start(t, required).world()
	for _, path := range w.paths() {
		v := w.visitor()
		_, page := v.get(path)
		has(t, page, "Access token")
		if strings.Contains(page, "encoder-7") || strings.Contains(page, tenantA) {
			t.Errorf("%s tells a stranger about jobs", path)
		}
		if status, _ := v.post("/jobs/" + w.queued.ID.String() + "/cancel"); status != http.StatusUnauthorized {
			t.Errorf("a stranger's cancel is answered %d, want 401", status)
		}
	}
}

func TestLoginGoesOnWhereItBegan(t *testing.T) {
	s := start(t, required)
	v := s.visitor()
	if status, _ := v.post("/login", "token", "wrong"); status != http.StatusUnauthorized {
		t.Errorf("a wrong token is answered %d, want 401", status)
	}
	r, err := v.PostForm(s.url+"/login", url.Values{"token": {s.admin}, "next": {"/workers"}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.Request.URL.Path != "/workers" || r.StatusCode != http.StatusOK {
		t.Errorf("after the login: %s %d, want /workers", r.Request.URL, r.StatusCode)
	}
	for _, elsewhere := range []string{"//evil.example", `/\evil.example`, "https://evil.example", "/\tx"} {
		if isOwn(elsewhere) {
			t.Errorf("the login would go on at %q", elsewhere)
		}
	}
	if status, page := v.post("/logout"); status != http.StatusOK || !strings.Contains(page, "Access token") {
		t.Errorf("logout: %d", status)
	}
	if _, page := v.get("/workers"); !strings.Contains(page, "Access token") {
		t.Error("the session outlived the logout")
	}
}

func TestLoginLinkOpensOnce(t *testing.T) {
	s := start(t, required)
	code := s.Code(token.Hash(s.admin))
	looked := s.visitor()
	if status, _ := looked.read(looked.Head(s.url + "/login?code=" + code)); status != http.StatusOK {
		t.Errorf("HEAD of a link is answered %d", status)
	}
	status, page := s.visitor().get("/login?code=" + code)
	if status != http.StatusOK || !strings.Contains(page, "Overview</h1>") {
		t.Fatalf("the link does not open the dashboard: %d %s", status, page)
	}
	if status, _ := s.visitor().get("/login?code=" + code); status != http.StatusUnauthorized {
		t.Errorf("the second use of a link is answered %d, want 401", status)
	}
	var c codes
	late := c.make([32]byte{}, time.Now().Add(-codeLife-time.Second))
	if _, ok := c.use(late, time.Now()); ok {
		t.Error("a link works after ten minutes")
	}
}

func TestDeletedTokenEndsItsSessions(t *testing.T) {
	s := start(t, required)
	v := s.as(s.issue("viewer", ""))
	all, err := s.scheduler.Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if one.Role == "viewer" {
			s.tokens.Remove(one.ID)
		}
	}
	if _, page := v.get("/jobs"); !strings.Contains(page, "Access token") {
		t.Error("the session outlived its token")
	}
}

func TestCookieIsForThisSiteAlone(t *testing.T) {
	s := start(t)
	v := s.visitor()
	v.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r, err := v.PostForm(s.url+"/login", url.Values{"token": {s.admin}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	c := r.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || strings.Contains(c.Value, s.admin) {
		t.Errorf("cookie: %v", c)
	}
	csp := r.Header.Get("Content-Security-Policy")
	if !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("policy: %q", csp)
	}
	foreign, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/login",
		strings.NewReader("token="+s.admin))
	foreign.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	foreign.Header.Set("Sec-Fetch-Site", "cross-site")
	if status, _ := v.read(v.Do(foreign)); status != http.StatusForbidden {
		t.Errorf("a form on another site is answered %d, want 403", status)
	}
}

// TestRolesSeeAndAct checks what each role may do: which pages it sees, and whether it may cancel.
func TestRolesSeeAndAct(t *testing.T) {
	w := start(t, required).world()
	for _, c := range []struct {
		role, path string
		see        int
		cancel     int
	}{
		{"viewer", "/jobs", 200, 403},
		{"viewer", "/audit", 403, 403},
		{"viewer", "/recovery", 403, 403},
		{"submitter", "/jobs", 200, 200},
		{"submitter", "/workers", 403, 200},
		{"worker", "/leases", 200, 403},
		{"operator", "/schedules", 200, 200},
		{"operator", "/audit", 403, 200},
		{"admin", "/audit", 200, 200},
		{"admin", "/recovery", 200, 200},
	} {
		v := w.as(w.issue(c.role, ""))
		if status, _ := v.get(c.path); status != c.see {
			t.Errorf("%s sees %s: %d, want %d", c.role, c.path, status, c.see)
		}
		job := w.submit(lessor.Submission{Type: new("x")})
		if status, _ := v.post("/jobs/"+job.ID.String()+"/cancel", "back", "/login"); status != c.cancel {
			t.Errorf("%s cancels: %d, want %d", c.role, status, c.cancel)
		}
	}
	_, page := w.as(w.issue("viewer", "")).get("/jobs/" + w.running.ID.String())
	if strings.Contains(page, "Revoke") || strings.Contains(page, "Cancel") {
		t.Error("a viewer is shown buttons that would be refused")
	}
}

func TestPagesShowOnlyTheOwnTenant(t *testing.T) {
	w := start(t).world()
	v := w.as(w.issue("operator", tenantB))
	for _, path := range []string{"/", "/jobs", "/leases", "/workers", "/schedules", "/runs", "/tenants"} {
		status, page := v.get(path)
		if status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
		for _, foreign := range []string{tenantA, "video.encode", "nightly-invoices", "usable units"} {
			if strings.Contains(page, foreign) {
				t.Errorf("%s shows %q to another tenant", path, foreign)
			}
		}
	}
	for _, path := range []string{
		"/jobs/" + w.running.ID.String(), "/schedules/nightly-invoices",
		"/jobs/" + w.done.ID.String() + "/download/payload",
	} {
		if status, _ := v.get(path); status != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", path, status)
		}
	}
	if status, _ := v.post("/jobs/" + w.running.ID.String() + "/cancel"); status != http.StatusNotFound {
		t.Errorf("cancel of another tenant's job: %d, want 404", status)
	}
}

// TestTenantsDoNotSetTheirOwnShare: only operators of all tenants set weight, cap and pause.
func TestTenantsDoNotSetTheirOwnShare(t *testing.T) {
	w := start(t).world()
	for _, c := range []struct {
		tenant string
		offers bool
		status int
	}{{tenantA, false, http.StatusForbidden}, {"", true, http.StatusOK}} {
		v := w.as(w.issue("operator", c.tenant))
		if _, page := v.get("/tenants"); strings.Contains(page, `action="/tenants/`+tenantA) != c.offers {
			t.Errorf("an operator bound to %q is offered the settings of %s: %v, want %v", c.tenant, tenantA, !c.offers,
				c.offers)
		}
		if status, _ := v.post("/tenants/"+tenantA, "weight", "9", "back", "/login"); status != c.status {
			t.Errorf("an operator bound to %q sets the weight of %s: %d, want %d", c.tenant, tenantA, status, c.status)
		}
	}
}

// TestLocalVisitorsAreOperators: a visitor on this machine may do what an operator may, except what always needs a
// token.
func TestLocalVisitorsAreOperators(t *testing.T) {
	w := start(t).world()
	v := w.visitor()
	if status, _ := v.get("/jobs"); status != http.StatusOK {
		t.Errorf("/jobs: %d", status)
	}
	for _, path := range []string{"/audit", "/recovery"} {
		status, page := v.get(path)
		if status != http.StatusUnauthorized || !strings.Contains(page, "Log in with a token") {
			t.Errorf("%s: %d, want 401 with a way to log in", path, status)
		}
	}
	if status, _ := v.post("/leases/" + w.held.Lease.ID.String() + "/revoke"); status != http.StatusUnauthorized {
		t.Errorf("revoke without a token: %d, want 401", status)
	}
}

// TestRefusalsShowAWayOn: a refusal shows links to where the visitor can go.
func TestRefusalsShowAWayOn(t *testing.T) {
	s := start(t)
	v := s.visitor()
	for path, wants := range map[string][]string{
		"/jobs?state=none":     {"must be queued, leased, running", `href="/jobs">Without this filter`},
		"/jobs?tenant_id=acme": {"a tenant id is a uuid", `href="/jobs">Without this filter`},
		"/jobs/none":           {"Not found", "no such job", `href="/">Overview`},
		"/audit?actor=x":       {"Please log in", `href="/login?next=%2faudit%3factor%3dx">Log in with a token`},
	} {
		_, page := v.get(path)
		has(t, page, wants...)
	}
	_, page := v.post("/tenants/"+tenantA, "weight", "much")
	has(t, page, "the weight must be a whole number", `href="/tenants">Back`)
}
