package httpapi

import (
	"net/http/httptest"
	"strings"
	"testing"

	"lessor"
)

const (
	noDefinition = lessor.CodeDefinitionNotFound
	noTenant     = lessor.CodeTenantNotFound
)

// envelope is a definition with one more field.
func envelope(more string) string {
	return strings.TrimSuffix(definition("nightly", tenantA), "}") + "," + more + "}"
}

func badDefinitions() []bad {
	without := func(field string) string {
		return strings.Replace(definition("nightly", tenantA), `"`+field+`":`, `"`+field+`":null,"payload":{"was":`,
			1) + "}"
	}
	return []bad{
		{"empty", "PUT", "/jobs/nightly", "", 400, notJSON},
		{"array", "PUT", "/jobs/nightly", "[]", 400, notJSON},
		{"unknown field", "PUT", "/jobs/nightly", envelope(`"enabled":true`), 400, notJSON},
		{"snake case", "PUT", "/jobs/nightly", envelope(`"max_attempts":1`), 400, notJSON},
		{"another module", "PUT", "/jobs/nightly", envelope(`"moduleId":"books"`), 422, badVal},
		{"runs too long", "PUT", "/jobs/nightly", envelope(`"maxRuntimeSeconds":604801`), 422, badVal},
		{"trigger with a list", "POST", "/jobs/nightly/trigger", `{"payload":[]}`, 400, notJSON},
		{"trigger with an unknown field", "POST", "/jobs/nightly/trigger", `{"pay":{}}`, 400, notJSON},
		{
			"no jobId", "PUT", "/jobs/nightly", strings.Replace(definition("nightly", tenantA), `"nightly"`, "null", 1),
			400, notJSON,
		},
		{
			"no tenant", "PUT", "/jobs/nightly",
			strings.Replace(definition("nightly", tenantA), `"`+tenantA+`"`, "null", 1), 400, notJSON,
		},
		{
			"no handler", "PUT", "/jobs/nightly",
			strings.Replace(definition("nightly", tenantA), `"posting.validate"`, "null", 1), 400, notJSON,
		},
		{
			"no lock", "PUT", "/jobs/nightly",
			strings.Replace(definition("nightly", tenantA), `"lockKey":"posting"`, `"lockKey":null`, 1), 400, notJSON,
		},
		{"no schedule", "PUT", "/jobs/nightly", without("schedule"), 400, notJSON},
		{
			"cron without expression", "PUT", "/jobs/nightly",
			strings.Replace(definition("nightly", tenantA), `"@yearly"`, "null", 1), 400, notJSON,
		},
		{
			"unknown in schedule", "PUT", "/jobs/nightly",
			strings.Replace(definition("nightly", tenantA), `"cron":`, `"tz":"UTC","cron":`, 1), 400, notJSON,
		},
		{
			"unknown in circuit", "PUT", "/jobs/nightly",
			strings.Replace(definition("nightly", tenantA), `"failures":`, `"errors":1,"failures":`, 1), 400, notJSON,
		},
		{"attempts text", "PUT", "/jobs/nightly", envelope(`"maxAttempts":"5"`), 400, notJSON},
		{"isEnabled number", "PUT", "/jobs/nightly", envelope(`"isEnabled":1`), 400, notJSON},
		{"payload array", "PUT", "/jobs/nightly", envelope(`"payload":[]`), 400, notJSON},
		{
			"schedule text", "PUT", "/jobs/nightly",
			strings.Replace(definition("nightly", tenantA), `{"type":"cron","cron":"@yearly"}`, `"@yearly"`,
				1), 400, notJSON,
		},
		{"attempts fraction", "PUT", "/jobs/nightly", envelope(`"maxAttempts":1.5`), 422, badVal},
		{"attempts 0", "PUT", "/jobs/nightly", envelope(`"maxAttempts":0`), 422, badVal},
		{"attempts 51", "PUT", "/jobs/nightly", envelope(`"maxAttempts":51`), 422, badVal},
		{"timeout 3601", "PUT", "/jobs/nightly", envelope(`"timeoutSeconds":3601`), 422, badVal},
		{"timeout overflows", "PUT", "/jobs/nightly", envelope(`"timeoutSeconds":9223372036854775807`), 422, badVal},
		{"class 81", "PUT", "/jobs/nightly", envelope(`"fairnessClass":"` + long(81) + `"`), 422, badVal},
		{"overlap unknown", "PUT", "/jobs/nightly", envelope(`"overlap":"queue_one"`), 422, badVal},
		{"zone climbs", "PUT", "/jobs/nightly", envelope(`"timezone":"../../etc/passwd"`), 422, badVal},
		{"zone local", "PUT", "/jobs/nightly", envelope(`"timezone":""`), 422, badVal},
		{"another id", "PUT", "/jobs/weekly", definition("nightly", tenantA), 422, badVal},
		{"another tenant", "PUT", "/jobs/nightly", definition("nightly", tenantB), 409, lessor.CodeConflict},
		{"id with NUL", "PUT", "/jobs/nightly%00", definition("nightly", tenantA), 422, badVal},
		{"too large", "PUT", "/jobs/nightly", envelope(`"payload":{"a":"` + long(256<<10) + `"}`), 413, tooBig},
		{
			"manifest without jobs", "POST", "/manifests",
			`{"moduleId":"m","version":"1","tenantId":"` + tenantA + `"}`,
			400, notJSON,
		},
		{"manifest without tenant", "POST", "/manifests", `{"moduleId":"m","version":"1","jobs":[]}`, 400, notJSON},
		{
			"manifest without module", "POST", "/manifests", `{"version":"1","tenantId":"` + tenantA + `","jobs":[]}`,
			400,
			notJSON,
		},
		{
			"manifest of text", "POST", "/manifests",
			`{"moduleId":"m","version":"1","tenantId":"` + tenantA + `","jobs":["x"]}`, 400, notJSON,
		},
		{
			"manifest with unknown field", "POST", "/manifests",
			`{"moduleId":"m","version":"1","tenantId":"` + tenantA + `","jobs":[],"dry_run":true}`, 400, notJSON,
		},
		{
			"manifest twice the same", "POST", "/manifests",
			`{"moduleId":"m","version":"1","tenantId":"` + tenantA + `","jobs":[` + definition("one", tenantA) + "," +
				definition("one", tenantA) + `]}`, 422, badVal,
		},
		{
			"manifest with one bad job", "POST", "/manifests",
			`{"moduleId":"m","version":"1","tenantId":"` + tenantA + `","jobs":[` + definition("one", tenantA) + "," +
				definition("x", tenantA) + `]}`, 422, badVal,
		},
		{
			"manifest of another tenant's job", "POST", "/manifests",
			`{"moduleId":"m","version":"1","tenantId":"` + tenantA + `","jobs":[` + definition("one", tenantB) +
				`]}`, 422, badVal,
		},
		{
			"manifest takes a job", "POST", "/manifests",
			`{"moduleId":"m","version":"1","tenantId":"` + tenantA + `","jobs":[` + definition("nightly", tenantA) +
				`]}`, 409, lessor.CodeConflict,
		},
	}
}

func badSteering() []bad {
	return []bad{
		{"pause with a field", "POST", "/jobs/nightly/pause", `{"until":"tomorrow"}`, 400, notJSON},
		{"backfill without end", "POST", "/jobs/nightly/backfill", `{"from":"2026-01-01T00:00:00Z"}`, 400, notJSON},
		{"backfill numbers", "POST", "/jobs/nightly/backfill", `{"from":1,"to":2}`, 400, notJSON},
		{
			"backfill backwards", "POST", "/jobs/nightly/backfill",
			`{"from":"2026-01-02T00:00:00Z","to":"2026-01-01T00:00:00Z"}`, 422, badVal,
		},
		{
			"backfill ahead", "POST", "/jobs/nightly/backfill",
			`{"from":"2026-01-02T00:00:00Z","to":"2999-01-01T00:00:00Z"}`, 422, badVal,
		},
		{
			"backfill year 10000", "POST", "/jobs/nightly/backfill",
			`{"from":"10000-01-01T00:00:00Z","to":"10000-01-01T00:00:00Z"}`, 422, badVal,
		},
		{
			"backfill of too many ticks", "POST", "/jobs/often/backfill",
			`{"from":"2020-01-01T00:00:00Z","to":"2026-01-01T00:00:00Z"}`, 422, badVal,
		},
		{"next 101", "GET", "/jobs/nightly/next?count=101", "", 422, badVal},
		{"next word", "GET", "/jobs/nightly/next?count=all", "", 422, badVal},
		{"next with limit", "GET", "/jobs/nightly/next?limit=5", "", 400, notJSON},
		{
			"ticks backwards", "GET", "/jobs/nightly/ticks?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "", 422,
			badVal,
		},
		{"ticks cursor", "GET", "/jobs/nightly/ticks?cursor=x", "", 422, badVal},
		{"jobs snake case", "GET", "/jobs?tenant_id=" + tenantA, "", 400, notJSON},
		{"runs status", "GET", "/runs?status=success", "", 422, badVal},
		{"runs cursor", "GET", "/runs?cursor=x", "", 422, badVal},
		{"locks cursor", "GET", "/locks?cursor=x", "", 422, badVal},
		{"tenants cursor", "GET", "/tenants?cursor=x", "", 422, badVal},
		{"definitions cursor", "GET", "/jobs?cursor=x", "", 422, badVal},
		{"definitions cursor of no instant", "GET", "/jobs?cursor=eCB4", "", 422, badVal},
		{"definitions cursor with NUL", "GET", "/jobs?cursor=MSAAeA", "", 422, badVal},
		{"definitions cursor without a name", "GET", "/jobs?cursor=MQ", "", 422, badVal},
		{"circuits cursor", "GET", "/circuits?cursor=nightly", "", 422, badVal},
		{"handlers cursor", "GET", "/handlers?cursor=x", "", 422, badVal},
		{"alerts open", "GET", "/alerts?open=1", "", 422, badVal},
		{"weight 0", "PUT", "/tenants/" + tenantA, `{"weight":0}`, 422, badVal},
		{"weight text", "PUT", "/tenants/" + tenantA, `{"weight":"2"}`, 400, notJSON},
		{"cap 0", "PUT", "/tenants/" + tenantA, `{"maxConcurrency":0}`, 422, badVal},
		{"tenant unknown field", "PUT", "/tenants/" + tenantA, `{"cap":1}`, 400, notJSON},
		{"class 81", "PUT", "/tenants/" + tenantA + "/classes/" + long(81), `{}`, 422, badVal},
		{"class with NUL", "PUT", "/tenants/" + tenantA + "/classes/a%00", `{}`, 422, badVal},
		{"handler without schema", "PUT", "/handlers/posting", `{}`, 400, notJSON},
		{"handler id short", "PUT", "/handlers/ab", `{"schema":{}}`, 422, badVal},
		{"handler id with NUL", "PUT", "/handlers/abc%00", `{"schema":{}}`, 422, badVal},
		{"schema that is none", "PUT", "/handlers/posting", `{"schema":{"type":"nothing"}}`, 422, badVal},
		{
			"schema that leaves the document", "PUT", "/handlers/posting", `{"schema":{"$ref":"file:///etc/passwd"}}`,
			422,
			badVal,
		},
		{"schema too large", "PUT", "/handlers/posting", `{"schema":{"title":"` + long(64<<10) + `"}}`, 413, tooBig},
	}
}

func badSchedulePlaces() []bad {
	rows := []bad{
		{"no such run", "GET", "/runs/" + nowhere, "", 404, lessor.CodeRunNotFound},
		{"run id word", "GET", "/runs/first", "", 404, lessor.CodeRunNotFound},
		{"definition for run", "GET", "/runs/nightly", "", 404, lessor.CodeRunNotFound},
		{"no such error", "GET", "/errors/" + nowhere, "", 404, lessor.CodeErrorNotFound},
		{"error ref word", "GET", "/errors/last", "", 404, lessor.CodeErrorNotFound},
		{"error ref with NUL", "GET", "/errors/%00", "", 404, lessor.CodeErrorNotFound},
		{"tenant word", "GET", "/tenants/acme", "", 404, noTenant},
		{"tenant word put", "PUT", "/tenants/acme", "{}", 404, noTenant},
		{"tenant word classes", "GET", "/tenants/acme/classes", "", 404, noTenant},
		{"no class", "GET", "/tenants/" + tenantA + "/classes/", "", 404, noRoute},
		{"one handler", "GET", "/handlers/posting", "", 405, noMethod},
		{"POST definition", "POST", "/jobs", definition("nightly", tenantA), 405, noMethod},
		{"GET manifests", "GET", "/manifests", "", 405, noMethod},
		{"DELETE run", "DELETE", "/runs/" + nowhere, "", 405, noMethod},
		{"PUT audit", "PUT", "/audit", "{}", 405, noMethod},
	}
	for name, id := range map[string]string{
		"unknown": "none", "short": "x", "long": long(5000), "NUL": "nightly%00", "no UTF-8": "%ff%fe",
		"dots": "%2e%2e", "slash": "nightly%2Fnext",
	} {
		rows = append(
			rows, bad{name, "GET", "/jobs/" + id, "", 404, noDefinition},
			bad{name, "DELETE", "/jobs/" + id, "", 404, noDefinition},
			bad{name, "POST", "/jobs/" + id + "/trigger", "", 404, noDefinition},
			bad{name, "GET", "/jobs/" + id + "/next", "", 404, noDefinition},
			bad{name, "GET", "/jobs/" + id + "/ticks", "", 404, noDefinition},
			bad{name, "POST", "/jobs/" + id + "/pause", "", 404, noDefinition},
			bad{name, "POST", "/jobs/" + id + "/circuit/reset", "", 404, noDefinition},
			bad{name, "POST", "/jobs/" + id + "/backfill", bodies["/jobs/{jobId}/backfill"], 404, noDefinition},
		)
	}
	return rows
}

func TestBadInputToSchedulesIsRefusedAndChangesNothing(t *testing.T) {
	s := start(t)
	s.schedules("PUT", "/jobs/nightly", definition("nightly", tenantA), 201)
	s.schedules("PUT", "/jobs/often", strings.Replace(definition("often", tenantA), "@yearly", "@hourly", 1), 201)
	send := func(method, path, body string) *httptest.ResponseRecorder {
		return s.call(method, path, body, with(s.admin))
	}
	run(t, send, schedules, append(append(badDefinitions(), badSteering()...), badSchedulePlaces()...))
	if log := s.log.String(); log != "" {
		t.Errorf("what callers did wrong is in the log: %s", log)
	}
}
