package httpapi

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"lessor"
	"lessor/internal/token"
)

var pathWord = regexp.MustCompile(`\{[^}]*\}`)

// pathOf fills a pattern with ids that no object has.
func pathOf(rt route) string { return pathWord.ReplaceAllString(rt.path, nowhere) }

// Every role calls every route: a caller without the scope is refused before any other check, a caller with it is not.
func TestRolesReachTheRoutesOfTheirScopes(t *testing.T) {
	s := start(t)
	for _, role := range token.Roles() {
		secret := s.issue(string(role), "")
		for _, rt := range routes(defaultPayloadLimit) {
			if rt.stream {
				continue // TestStream and TestContract; they would not end here
			}
			// No route takes this body: a caller that passes the access check gets a refusal other than 401 and 403.
			w := s.call(rt.method, pathOf(rt)+"?no_such_parameter=1", "{", with(secret))
			denied := w.Code == http.StatusForbidden || w.Code == http.StatusUnauthorized
			if denied == role.Allows(rt.scope) {
				t.Errorf("%s %s as %s: %d; allowed should be %v", rt.method, rt.path, role, w.Code,
					role.Allows(rt.scope))
			}
		}
	}
}

func TestTenantTokensAreRefusedOnSharedRoutes(t *testing.T) {
	s := start(t)
	secret := s.issue("operator", tenantA)
	for _, rt := range routes(defaultPayloadLimit) {
		if rt.stream {
			continue
		}
		w := s.call(rt.method, pathOf(rt)+"?no_such_parameter=1", "{", with(secret))
		refusesAll := strings.HasSuffix(rt.path, "/capacity") || strings.HasSuffix(rt.path, "/drain") ||
			strings.HasPrefix(rt.path, schedules+"/handlers") || rt.path == schedules+"/audit" ||
			rt.method == http.MethodPut && strings.HasPrefix(rt.path, schedules+"/tenants/") ||
			strings.HasPrefix(rt.path, administration) || rt.path == "/metrics"
		if got := w.Code == http.StatusForbidden; got != refusesAll {
			t.Errorf("%s %s: %d; refused should be %v", rt.method, rt.path, w.Code, refusesAll)
		}
	}
}

func TestRefusalSaysWhatToDoInstead(t *testing.T) {
	s := start(t)
	for _, tt := range []struct{ role, method, path, want string }{
		{
			"viewer", "POST", scheduling + "/jobs",
			"the token has the role viewer, and this needs submitter, operator or admin",
		},
		{"operator", "GET", "/api/admin/tokens", "the token has the role operator, and this needs admin"},
		{"operator", "POST", scheduling + "/leases/nothing/revoke", "no such lease, or it is over"}, // no work to stop
	} {
		if got := decoded(t, s.call(tt.method, tt.path, `{}`, with(s.issue(tt.role, ""))))["detail"]; got != tt.want {
			t.Errorf("%s %s of a %s answers %q, want %q", tt.method, tt.path, tt.role, got, tt.want)
		}
	}
}

func TestTokenActsForItsOwnTenantOnly(t *testing.T) {
	s := start(t)
	a, b := with(s.issue("operator", tenantA)), with(s.issue("operator", tenantB))
	const jobs = scheduling + "/jobs"
	refused(t, s.call("POST", jobs, `{"type":"x","tenant_id":"`+tenantB+`"}`, a), 403, lessor.CodeForbidden)
	refused(t, s.call("POST", jobs+"/batch", `{"jobs":[{"type":"x"},{"type":"x","tenant_id":"`+tenantB+`"}]}`, a), 403,
		lessor.CodeForbidden)
	refused(t, s.call("GET", jobs+"?tenant_id="+tenantB, "", a), 403, lessor.CodeForbidden)
	mine := decoded(t, s.call("POST", jobs, `{"type":"x"}`, a))
	if mine["tenant_id"] != tenantA {
		t.Errorf("left out, the tenant is %v, want the token's", mine["tenant_id"])
	}
	if w := s.call("POST", jobs, `{"type":"x","tenant_id":"`+strings.ToUpper(tenantA)+`"}`, a); w.Code != 201 {
		t.Errorf("naming one's own tenant: %d %s", w.Code, w.Body)
	}
	id := mine["job_id"].(string)
	for _, path := range []string{"", "/events", "/why"} {
		refused(t, s.call("GET", jobs+"/"+id+path, "", b), 404, lessor.CodeJobNotFound)
	}
	refused(t, s.call("POST", jobs+"/"+id+"/cancel", "", b), 404, lessor.CodeJobNotFound)
	refused(t, s.call("POST", jobs+"/"+id+"/retry", "", b), 404, lessor.CodeJobNotFound)
	if list := decoded(t, s.call("GET", jobs, "", b)); len(list["jobs"].([]any)) != 0 {
		t.Errorf("tenant B lists tenant A's jobs: %v", list)
	}
	denied := decoded(t, s.call("POST", scheduling+"/leases/request", `{"worker_id":"w"}`, b))
	if denied["denied"] != true {
		t.Errorf("tenant B was granted tenant A's job: %v", denied)
	}
	grant := decoded(t, s.call("POST", scheduling+"/leases/request", `{"worker_id":"w"}`, a))
	lease := grant["lease"].(map[string]any)["lease_id"].(string)
	for _, verb := range []string{"heartbeat", "release", "revoke"} {
		body := `{"worker_id":"w"}`
		if verb == "revoke" {
			body = ""
		}
		refused(t, s.call("POST", scheduling+"/leases/"+lease+"/"+verb, body, b), 404, lessor.CodeLeaseNotFound)
	}
	if list := decoded(t, s.call("GET", scheduling+"/leases", "", b)); len(list["leases"].([]any)) != 0 {
		t.Errorf("tenant B lists tenant A's leases: %v", list)
	}
}

func TestDenialsOfTenantsCarryNoFigures(t *testing.T) {
	for _, code := range []lessor.DenialCode{
		lessor.NoCapacity, lessor.NextJobTooLarge, lessor.NoEligibleJob,
		lessor.Draining, "new_code",
	} {
		d := withoutFigures(lessor.Denial{
			Denied: true, Code: code, Reason: "Why (busy=8, usable=10, leased=10)",
			RetryAfterMS: 1500,
		})
		if strings.ContainsAny(d.Reason, "0123456789=") || d.Reason == "" || d.Code != code || d.RetryAfterMS != 1500 {
			t.Errorf("%s: %+v", code, d)
		}
	}
	s := start(t)
	s.api("PUT", "/capacity", `{"busy":10}`, 200)
	ask := func(secret string) any {
		return decoded(t, s.call("POST", scheduling+"/leases/request", `{"worker_id":"w"}`, with(secret)))["reason"]
	}
	if got := ask(s.admin); got != "No capacity (busy=10, usable=0, leased=0)" {
		t.Errorf("the cluster's own denial says %q", got)
	}
	if got := ask(s.issue("worker", tenantA)); got != "No capacity" {
		t.Errorf("a tenant's denial says %q", got)
	}
}

// The loopback rule, sentence by sentence.
func TestLoopbackRule(t *testing.T) {
	const jobs = scheduling + "/jobs"
	open, needed := 200, 401
	for _, tt := range []struct {
		name   string
		server func(*Config)
		method string
		path   string
		edit   func(*http.Request)
		want   int
	}{
		{name: "local caller", want: open},
		{name: "metrics", path: "/metrics", want: open},
		{name: "description", path: "/openapi.json", want: open},
		{name: "::1 peer", edit: func(r *http.Request) { r.RemoteAddr = "[::1]:9" }, want: open},
		{name: "mapped peer", edit: func(r *http.Request) { r.RemoteAddr = "[::ffff:127.0.0.1]:9" }, want: open},
		{name: "in-process pipe", edit: func(r *http.Request) { r.RemoteAddr = "pipe" }, want: open},
		{name: "listens on localhost", server: func(c *Config) { c.ListenAddr = "localhost:80" }, want: open},
		{name: "listens on ::1", server: func(c *Config) { c.ListenAddr = "[::1]:80" }, want: open},
		{name: "peer from outside", edit: func(r *http.Request) { r.RemoteAddr = "192.0.2.1:9" }, want: needed},
		{name: "peer without address", edit: func(r *http.Request) { r.RemoteAddr = "" }, want: needed},
		{name: "Forwarded", edit: header("Forwarded", "for=1.2.3.4"), want: needed},
		{name: "X-Forwarded-For", edit: header("X-Forwarded-For", "127.0.0.1"), want: needed},
		{name: "x-forwarded-proto", edit: header("x-forwarded-proto", "https"), want: needed},
		{name: "X-Forwarded-Whatever", edit: header("X-Forwarded-Whatever", ""), want: needed},
		{name: "X-Real-IP", edit: header("X-Real-IP", "127.0.0.1"), want: needed},
		{name: "Via", edit: header("Via", "1.1 proxy"), want: needed},
		{
			name: "our name, but not a loopback one", server: func(c *Config) { c.Hosts = []string{"jobs.example"} },
			edit: func(r *http.Request) { r.Host = "jobs.example" }, want: needed,
		},
		{name: "auth required", server: func(c *Config) { c.AuthRequired = true }, want: needed},
		{name: "listens on all", server: func(c *Config) { c.ListenAddr = ":5377" }, want: needed},
		{name: "has a name of its own", server: func(c *Config) { c.Hosts = []string{"lessor.example"} }, want: needed},
		{name: "listens on 0.0.0.0", server: func(c *Config) { c.ListenAddr = "0.0.0.0:5377" }, want: needed},
		{name: "listens on an address", server: func(c *Config) { c.ListenAddr = "10.0.0.1:5377" }, want: needed},
		{name: "listens on a name", server: func(c *Config) { c.ListenAddr = "example.com:5377" }, want: needed},
		{name: "description elsewhere", server: func(c *Config) {
			c.ListenAddr = ":5377"
		}, path: "/openapi.json", want: needed},
		{name: "metrics elsewhere", server: func(c *Config) { c.ListenAddr = ":5377" }, path: "/metrics", want: needed},
		{name: "health elsewhere", server: func(c *Config) {
			c.ListenAddr = ":5377"
		}, path: "/health/ready", want: open},
		{name: "health where auth is required", server: func(c *Config) {
			c.AuthRequired = true
		}, path: "/health/live", want: open},
		{name: "capacity read", path: scheduling + "/capacity", want: open},
		{name: "capacity write", method: "PUT", path: scheduling + "/capacity", want: needed},
		{name: "drain", method: "PUT", path: scheduling + "/drain", want: needed},
		{name: "revoke", method: "POST", path: scheduling + "/leases/" + nowhere + "/revoke", want: needed},
		{name: "administration", path: administration + "/tokens", want: needed},
		{name: "recovery", path: administration + "/recovery/jobs/heartbeats", want: needed},
		{name: "health of a job", path: administration + "/jobs/" + nowhere + "/health", want: needed},
		{name: "definitions", path: schedules + "/jobs", want: open},
		{name: "definition deleted", method: "DELETE", path: schedules + "/jobs/none", want: 404},
		{name: "handlers", path: schedules + "/handlers", want: open},
		{name: "audit", path: schedules + "/audit", want: needed},
		{name: "definitions elsewhere", server: func(c *Config) {
			c.ListenAddr = ":5377"
		}, path: schedules + "/jobs", want: needed},
		{name: "bad token", edit: with(token.NewSecret()), want: needed},
		{name: "empty token", edit: header("Authorization", "Bearer "), want: needed},
		{name: "empty header", edit: header("Authorization", ""), want: needed},
		{name: "other scheme", edit: header("Authorization", "Basic YTpi"), want: needed},
		{name: "two headers", edit: func(r *http.Request) {
			r.Header["Authorization"] = []string{"Bearer a", "Bearer b"}
		}, want: needed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var edits []func(*Config)
			if tt.server != nil {
				edits = append(edits, tt.server)
			}
			s := start(t, edits...)
			method, path := "GET", jobs
			if tt.method != "" {
				method = tt.method
			}
			if tt.path != "" {
				path = tt.path
			}
			var edit []func(*http.Request)
			if tt.edit != nil {
				edit = append(edit, tt.edit)
			}
			w := s.call(method, path, "", edit...)
			if w.Code != tt.want {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, tt.want)
			}
			if tt.want == needed && w.Header().Get("WWW-Authenticate") == "" {
				t.Error("a 401 does not say what it wants (WWW-Authenticate)")
			}
		})
	}
}

func TestTokenlessEndsWithTheFirstTenant(t *testing.T) {
	s := start(t)
	const status = scheduling + "/status"
	if w := s.call("GET", status, ""); w.Code != 200 {
		t.Fatalf("before: %d", w.Code)
	}
	made := decoded(t, s.call("POST", "/api/admin/tokens", `{"role":"viewer","tenantId":"`+tenantA+`"}`, with(s.admin)))
	refused(t, s.call("GET", status, ""), 401, lessor.CodeUnauthenticated)
	if w := s.call("DELETE", "/api/admin/tokens/"+made["id"].(string), "", with(s.admin)); w.Code != 204 {
		t.Fatalf("delete: %d %s", w.Code, w.Body)
	}
	if w := s.call("GET", status, ""); w.Code != 200 {
		t.Errorf("after the last such token went: %d", w.Code)
	}
	refused(t, s.call("GET", status, "", with(made["token"].(string))), 401, lessor.CodeUnauthenticated)
}

func TestExpiredTokensAreRefused(t *testing.T) {
	s := start(t)
	role := "admin"
	old, secret, err := token.Issue(token.Ask{Role: &role, ExpiresInSeconds: new(int64(60))},
		lessor.At(time.Now().Add(-time.Hour)))
	if err != nil {
		t.Fatal(err)
	}
	s.tokens.Put(old)
	refused(t, s.call("GET", scheduling+"/status", "", with(secret)), 401, lessor.CodeUnauthenticated)
}

func TestCallsAreRefusedBeforeTokensAreKnown(t *testing.T) {
	s := start(t, func(c *Config) { c.Tokens = token.NewBook(c.Scheduler.Tokens) })
	empty := *s
	empty.API = New(Config{
		Scheduler: s.scheduler, Tokens: token.NewBook(s.scheduler.Tokens), Telemetry: s.telemetry,
		ListenAddr: testListen,
	})
	w := empty.call("GET", scheduling+"/status", "")
	refused(t, w, 503, lessor.CodeUnavailable)
	if w.Header().Get("Retry-After") == "" {
		t.Error("a 503 without Retry-After")
	}
	refused(t, empty.call("GET", "/health/ready", ""), 503, lessor.CodeUnavailable)
}
