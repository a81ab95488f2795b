package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"lessor/internal/pgtest"
	"lessor/internal/store/postgres"
	"lessor/internal/token"
)

// matrix says of every route who may use it: (v)iewer, (s)ubmitter, (w)orker, (o)perator, (a)dmin; * is everybody. It
// is written by hand, not derived from scopes. "own" routes serve tokens that are bound to a tenant, and show and
// change only what is that tenant's; "all" routes concern all tenants and refuse such tokens. The rest of a line, and
// an indented line after it, is a body that the route accepts; $ is the number of the objects that it is about.
const matrix = `
POST   /api/system/scheduler/jobs                         soa   own {"type":"matrix"}
POST   /api/system/scheduler/jobs/batch                   soa   own {"jobs":[{"type":"matrix"}]}
GET    /api/system/scheduler/jobs                         vsoa  own
GET    /api/system/scheduler/jobs/{job_id}                vswoa own
GET    /api/system/scheduler/jobs/{job_id}/events         vsoa  own
GET    /api/system/scheduler/jobs/{job_id}/journal        vswoa own
GET    /api/system/scheduler/jobs/{job_id}/output         vsoa  own
GET    /api/system/scheduler/jobs/{job_id}/why            vsoa  own
POST   /api/system/scheduler/jobs/{job_id}/cancel         soa   own {}
POST   /api/system/scheduler/jobs/{job_id}/retry          soa   own {}
POST   /api/system/scheduler/jobs/{job_id}/answer         soa   own {"question_id":"x","answer":"y"}
POST   /api/system/scheduler/jobs/{job_id}/messages       soa   own {"text":"x"}
POST   /api/system/scheduler/leases/request               woa   own {"worker_id":"w$","types":["none"]}
POST   /api/system/scheduler/leases/turn                  woa   own {"worker_id":"w$","request":{"types":["none"]}}
POST   /api/system/scheduler/leases/heartbeat             woa   own {"worker_id":"w$","lease_ids":["{lease_id}"]}
POST   /api/system/scheduler/leases/cancelled             woa   own {"worker_id":"w$"}
POST   /api/system/scheduler/leases/complete              woa   own
  {"worker_id":"w$","leases":[{"lease_id":"{lease_id}","status":"failed"}]}
POST   /api/system/scheduler/leases/{lease_id}/heartbeat  woa   own {"worker_id":"w$"}
POST   /api/system/scheduler/leases/{lease_id}/journal    woa   own {"worker_id":"w$","entries":[{"key":"k"}]}
POST   /api/system/scheduler/leases/{lease_id}/output     woa   own
  {"worker_id":"w$","chunks":[{"stream":"stdout","offset":0,"data":"eA=="}]}
POST   /api/system/scheduler/leases/{lease_id}/complete   woa   own {"worker_id":"w$","status":"completed"}
POST   /api/system/scheduler/leases/{lease_id}/release    woa   own {"worker_id":"w$"}
POST   /api/system/scheduler/leases/{lease_id}/revoke     oa    own {}
GET    /api/system/scheduler/leases                       vwoa  own
GET    /api/system/scheduler/capacity                     vwoa  all
PUT    /api/system/scheduler/capacity                     oa    all {}
GET    /api/system/scheduler/status                       voa   all
PUT    /api/system/scheduler/drain                        oa    all {"draining":false}
GET    /api/system/scheduler/workers                      voa   own
GET    /api/system/scheduler/events                       voa   own
GET    /health/live                                       *     own
GET    /health/ready                                      *     own
GET    /metrics                                           voa   all
GET    /openapi.json                                      vswoa own
PUT    /api/kernel/jobs/{jobId}                           oa    own
  {"jobId":"{jobId}","schedule":{"type":"cron","cron":"@yearly"},
  "handlerId":"posting.$","lockKey":"lock.$"}
GET    /api/kernel/jobs                                   voa   own
GET    /api/kernel/jobs/{jobId}                           voa   own
DELETE /api/kernel/jobs/{jobId}                           oa    own
POST   /api/kernel/manifests                              oa    own
  {"moduleId":"m","version":"1","jobs":[],"dryRun":true}
POST   /api/kernel/jobs/{jobId}/pause                     oa    own {}
POST   /api/kernel/jobs/{jobId}/resume                    oa    own {}
POST   /api/kernel/jobs/{jobId}/circuit/reset             oa    own {}
POST   /api/kernel/jobs/{jobId}/trigger                   oa    own {}
POST   /api/kernel/jobs/{jobId}/backfill                  oa    own
  {"from":"2026-01-02T00:00:00Z","to":"2026-01-03T00:00:00Z"}
GET    /api/kernel/jobs/{jobId}/next                      voa   own
GET    /api/kernel/jobs/{jobId}/ticks                     voa   own
GET    /api/kernel/runs                                   voa   own
GET    /api/kernel/runs/{runId}                           voa   own
GET    /api/kernel/errors/{ref}                           voa   own
GET    /api/kernel/circuits                               voa   own
GET    /api/kernel/locks                                  voa   own
GET    /api/kernel/alerts                                 voa   own
POST   /api/kernel/alerts/{alertId}/acknowledge           oa    own {}
GET    /api/kernel/audit                                  a     all
GET    /api/kernel/tenants                                voa   own
GET    /api/kernel/tenants/{tenantId}                     voa   own
PUT    /api/kernel/tenants/{tenantId}                     oa    all {}
GET    /api/kernel/tenants/{tenantId}/classes             voa   own
GET    /api/kernel/tenants/{tenantId}/classes/{class}     voa   own
PUT    /api/kernel/tenants/{tenantId}/classes/{class}     oa    all {}
GET    /api/kernel/handlers                               vwoa  all
PUT    /api/kernel/handlers/{handlerId}                   oa    all {"schema":{}}
POST   /api/admin/tokens                                  a     all {"role":"viewer"}
GET    /api/admin/tokens                                  a     all
DELETE /api/admin/tokens/{id}                             a     all
GET    /api/admin/backup                                  a     all
GET    /api/admin/doctor                                  a     all
GET    /api/admin/log-level                               a     all
PUT    /api/admin/log-level                               a     all {"level":"info"}
GET    /api/admin/pprof/{profile}                         a     all
GET    /api/admin/recovery/jobs/heartbeats                a     all
GET    /api/admin/recovery/jobs/stale                     a     all
GET    /api/admin/recovery/jobs/status                    a     all
GET    /api/admin/recovery/jobs/sentinels                 a     all
GET    /api/admin/recovery/jobs/metrics                   a     all
GET    /api/admin/recovery/jobs/failed                    a     all
GET    /api/admin/recovery/cleanups                       a     all
POST   /api/admin/recovery/jobs/resume                    a     all {"jobId":"{job_id}"}
POST   /api/admin/recovery/scan                           a     all {}
GET    /api/admin/jobs/{jobId}/health                     a     all
POST   /api/admin/jobs/{jobId}/mark-dead                  a     all {}
`

// expected is one line of the matrix.
type expected struct {
	route
	roles  string
	shared bool // "all"
	body   string
}

// expectations reads the matrix, and fails for a route that it lacks.
func expectations(t *testing.T) (rows []expected) {
	t.Helper()
	lines := map[string][]string{}
	for line := range strings.Lines(strings.ReplaceAll(matrix, "\n  ", " ")) {
		if words := strings.Fields(line); len(words) > 0 {
			lines[words[0]+" "+words[1]] = words[2:]
		}
	}
	for _, rt := range routes(defaultPayloadLimit) {
		words, ok := lines[rt.method+" "+rt.path]
		if !ok {
			t.Errorf("%s %s: add a line to the matrix that says who may use it", rt.method, rt.path)
			continue
		}
		delete(lines, rt.method+" "+rt.path)
		rows = append(rows, expected{rt, words[0], words[1] == "all", strings.Join(words[2:], "")})
	}
	for name := range lines {
		t.Errorf("the matrix has %s, which is no route", name)
	}
	return rows
}

// objects are the values of path parameters that belong to a tenant, by their names in patterns.
type objects map[string]string

// makeObjects makes one object of each kind. They all have n in their names. taker takes the lease.
func (s *server) makeObjects(tenant string, n int, taker func(*http.Request)) objects {
	s.t.Helper()
	by := with(s.admin)
	call := func(method, path, body string) map[string]any {
		w := s.call(method, path, strings.ReplaceAll(body, "$", fmt.Sprint(n)), by)
		if w.Code >= 300 {
			s.t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
		return decoded(s.t, w)
	}
	of := `"tenant_id":"` + tenant + `"`
	job := call("POST", scheduling+"/jobs", `{"type":"queued.$","payload":{"of":"objects-$"},`+of+`}`)
	call("POST", scheduling+"/jobs", `{"type":"leased.$",`+of+`}`)
	by = taker
	g := call("POST", scheduling+"/leases/request", `{"worker_id":"w$","types":["leased.$"],"ttl_ms":3600000}`)
	by = with(s.admin)
	definition := fmt.Sprintf("nightly.%d", n)
	call("PUT", schedules+"/jobs/"+definition, `{"jobId":"nightly.$","tenantId":"`+tenant+`","handlerId":"posting.$",
		"schedule":{"type":"cron","cron":"@yearly"},"lockKey":"lock.$","circuit":{"failures":1}}`)
	run := fmt.Sprint(call("POST", schedules+"/jobs/"+definition+"/trigger", "{}")["runId"])
	failing := call("POST", scheduling+"/leases/request", `{"worker_id":"w$","types":["posting.$"]}`)
	call("POST", scheduling+"/leases/"+leaseIn(failing)+"/complete",
		`{"worker_id":"w$","status":"failed","error":"objects-$","retryable":false}`)
	made := call("POST", administration+"/tokens", `{"role":"viewer","tenantId":"`+tenant+`"}`)
	alert := call("GET", schedules+"/alerts?limit=1", "")["alerts"].([]any)[0].(map[string]any)["id"]
	return objects{
		"n": fmt.Sprint(n), "job_id": fmt.Sprint(job["job_id"]), "lease_id": leaseIn(g), "jobId": definition,
		"runId":   run,
		"ref":     fmt.Sprint(call("GET", schedules+"/runs/"+run, "")["lastErrorRef"]),
		"alertId": fmt.Sprint(alert), "tenantId": tenant, "class": "default", "handlerId": "posting.x",
		"id": fmt.Sprint(made["id"]), "profile": "heap",
	}
}

// drop ends the lease and the token, whose numbers are bounded.
func (s *server) drop(o objects) {
	s.t.Helper()
	s.call("POST", o.fill(scheduling+"/leases/{lease_id}/revoke"), "{}", with(s.admin))
	s.call("DELETE", o.fill(administration+"/tokens/{id}"), "", with(s.admin))
}

func leaseIn(grant map[string]any) string {
	return fmt.Sprint(grant["lease"].(map[string]any)["lease_id"])
}

// fill puts objects into a text.
func (o objects) fill(text string) string {
	for name, value := range o {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	return strings.ReplaceAll(text, "$", o["n"])
}

// knownIn returns the objects that a text names.
func (o objects) knownIn(text string) string {
	for _, name := range []string{"job_id", "lease_id", "jobId", "runId", "ref", "alertId", "tenantId", "id"} {
		if strings.Contains(text, o[name]) {
			return name
		}
	}
	for _, value := range []string{"objects-" + o["n"], "leased." + o["n"], "posting." + o["n"]} {
		if strings.Contains(text, value) {
			return value
		}
	}
	return ""
}

// try calls a route about objects. A stream ends at once.
func (s *server) try(
	row expected, o objects, query, body string, edit ...func(*http.Request),
) *httptest.ResponseRecorder {
	s.t.Helper()
	if row.path == scheduling+"/events" {
		gone, cancel := context.WithCancel(s.t.Context())
		cancel()
		edit = append(edit, func(r *http.Request) { *r = *r.WithContext(gone) })
	}
	return s.call(row.method, o.fill(row.path)+query, o.fill(body), edit...)
}

// TestAuthorisationMatrix calls every route in every role, with tokens bound to a tenant and not, without a token and
// with a wrong one, about objects of the own tenant, of another one, and of none, and with the other tenant's name in
// the query and in the body. What a tenant gets has nothing of the other, whose objects stay as they are.
func TestAuthorisationMatrix(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { start(t).checkMatrix(t) })
	t.Run("postgres", func(t *testing.T) {
		store, err := postgres.Open(t.Context(), postgres.Config{URL: pool.Database(t)})
		if err != nil {
			t.Fatalf("open store: %v", err)
		}
		startOn(t, store).checkMatrix(t)
	})
}

// pool is the PostgreSQL server of these tests.
var pool = &pgtest.Pool{}

func TestMain(m *testing.M) { os.Exit(pool.Main(m)) }

func (s *server) checkMatrix(t *testing.T) {
	t.Helper()
	rows := expectations(t)
	theirs, nobodys := s.makeObjects(tenantB, 777_777, with(s.admin)), absent()
	before := s.snapshot(theirs)
	n := 0
	for _, role := range token.Roles() {
		for _, tenant := range []string{"", tenantA} {
			if tenant != "" && role == token.Admin {
				continue // there is no such token
			}
			secret := with(s.issue(string(role), tenant))
			taker := secret
			if !role.Allows(token.Lease) {
				taker = with(s.admin)
			}
			own := s.makeObjects(tenantA, n, taker)
			for _, row := range rows {
				name := fmt.Sprintf("%s %s as %s of %q", row.method, row.path, role, tenant)
				want := (row.roles == "*" || strings.Contains(row.roles, string(role)[:1])) &&
					(tenant == "" || !row.shared)
				if want && row.method != http.MethodGet && pathWord.MatchString(row.path+row.body) {
					s.drop(own)
					n++
					own = s.makeObjects(tenantA, n, taker)
				}
				w := s.try(row, own, "", row.body, secret)
				if denied := w.Code == 401 || w.Code == 403; denied == want || want && w.Code >= 500 {
					t.Errorf("%s: %d %s; allowed should be %v", name, w.Code, w.Body, want)
				}
				if want && w.Code == http.StatusNotFound && !row.shared {
					t.Errorf("%s: its own is not found: %s", name, w.Body)
				}
				if tenant != "" {
					s.checkIsolation(name, row, want, theirs, nobodys, secret)
				}
			}
			s.drop(own)
			n++
		}
	}
	s.refuseStrangers(rows, theirs)
	if after := s.snapshot(theirs); after != before {
		t.Errorf("what is another tenant's has changed from\n%s\nto\n%s", before, after)
	}
}

// checkIsolation calls a route with a token of tenant A about objects of tenant B, and fails if A learns of them.
func (s *server) checkIsolation(
	name string, row expected, allowed bool, theirs, nobodys objects, secret func(*http.Request),
) {
	s.t.Helper()
	about := s.try(row, theirs, "", row.body, secret)
	missing := s.try(row, nobodys, "", row.body, secret)
	taken := row.method == http.MethodPut && row.path == schedules+"/jobs/{jobId}" && about.Code == http.StatusConflict
	if taken { // that an id is taken is all that a tenant learns; nobody's is its own now
		s.call("DELETE", nobodys.fill(row.path), "", with(s.admin))
	}
	if pathWord.MatchString(row.path) && !taken && refusalText(s.t, about) != refusalText(s.t, missing) {
		s.t.Errorf("%s: another's is answered %s, and nobody's %s", name, refusalText(s.t, about),
			refusalText(s.t, missing))
	}
	answers := []*httptest.ResponseRecorder{about}
	for _, field := range []string{"tenant_id", "tenantId"} {
		named := s.try(row, nobodys, "?"+field+"="+tenantB, row.body, secret)
		if allowed && (named.Code < 400 || slices.Contains(row.query, field) && named.Code != http.StatusForbidden) {
			s.t.Errorf("%s: another tenant in the query: %d %s", name, named.Code, named.Body)
		}
		answers = append(answers, named)
		if row.handle.in == nil {
			continue
		}
		claim := `"` + field + `":"` + tenantB + `"`
		for _, body := range []string{
			strings.Replace(strings.Replace(row.body, "{", "{"+claim+",", 1), ",}", "}", 1),
			strings.Replace(row.body, `[{`, `[{`+claim+`,`, 1),
		} {
			if body == row.body {
				continue
			}
			named := s.try(row, nobodys, "", body, secret)
			if named.Code < 400 {
				s.t.Errorf("%s: another tenant in the body %s: %d %s", name, body, named.Code, named.Body)
			}
			answers = append(answers, named)
		}
	}
	for _, w := range answers {
		text := strings.ReplaceAll(w.Body.String(), theirs["lease_id"]+`","ok":false`, "") // a batch repeats its ids
		if known := theirs.knownIn(text); known != "" && w.Code < 400 {
			s.t.Errorf("%s shows %s of another tenant: %s", name, known, w.Body)
		}
	}
}

// refuseStrangers calls every route without a token, and with one that is wrong.
func (s *server) refuseStrangers(rows []expected, o objects) {
	s.t.Helper()
	for i, row := range rows {
		for kind, edit := range map[string]func(*http.Request){
			"no token": func(*http.Request) {}, "a wrong token": with(token.NewSecret()),
		} {
			// each from an address of its own: guessing tokens is slowed
			w := s.try(row, o, "", row.body, edit,
				func(r *http.Request) { r.RemoteAddr = fmt.Sprintf("127.0.2.%d:1", i) })
			if (w.Code == http.StatusUnauthorized) != (row.roles != "*") {
				s.t.Errorf("%s %s with %s: %d %s", row.method, row.path, kind, w.Code, w.Body)
			}
		}
	}
}

// absent returns ids of nothing.
func absent() objects {
	return objects{
		"n": "0", "job_id": nowhere, "lease_id": nowhere, "jobId": "nightly.none", "runId": nowhere,
		"ref": nowhere, "alertId": nowhere, "tenantId": nowhere, "class": "default", "handlerId": "posting.x",
		"id": nowhere, "profile": "heap",
	}
}

// refusalText returns the status and the problem of an answer, without what differs from call to call.
func refusalText(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	if w.Code < 400 {
		return fmt.Sprint(w.Code)
	}
	p := decoded(t, w)
	return fmt.Sprint(w.Code, " ", p["code"], " ", p["detail"])
}

// snapshot returns all that an admin sees of objects.
func (s *server) snapshot(o objects) string {
	s.t.Helper()
	var all strings.Builder
	for _, path := range []string{
		scheduling + "/jobs/{job_id}", scheduling + "/jobs/{job_id}/events", scheduling + "/jobs?tenant_id={tenantId}",
		scheduling + "/leases?worker_id=w{n}", schedules + "/jobs/{jobId}", schedules + "/runs?tenantId={tenantId}",
		schedules + "/tenants/{tenantId}/classes", schedules + "/jobs/{jobId}/ticks",
	} {
		w := s.call("GET", o.fill(path), "", with(s.admin))
		if w.Code != http.StatusOK {
			s.t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		all.WriteString(w.Body.String())
	}
	for _, a := range s.schedules("GET", "/alerts?limit=1000", "", 200)["alerts"].([]any) {
		if a.(map[string]any)["id"] == o["alertId"] {
			fmt.Fprint(&all, a)
		}
	}
	return all.String()
}
