package rules

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"lessor"
)

var submitConfig = SubmitConfig{
	MaxAttempts: 5, BackoffFirst: time.Second, BackoffMax: 5 * time.Minute,
	PayloadLimit: 64, FitUnits: 95,
}

// submission reads a body as the API does. The type is there unless the body has its own.
func submission(t testing.TB, body string) *lessor.Submission {
	t.Helper()
	s := &lessor.Submission{Type: new("generic")}
	if err := json.Unmarshal([]byte(body), s); err != nil {
		t.Fatalf("the test's body %s is not a submission: %v", body, err)
	}
	return s
}

func TestSubmitFillsInDefaults(t *testing.T) {
	got, err := Submit(submission(t, `{}`), nil, submitConfig, "")
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	same(t, "the job", got, &Spec{
		Lane:        Lane{Class: "default", Priority: lessor.Normal, Type: "generic", Units: 1},
		Payload:     json.RawMessage(`{}`),
		MaxAttempts: 5, BackoffFirst: time.Second, BackoffMax: 5 * time.Minute,
	})
}

func TestSubmitKeepsWhatWasAskedFor(t *testing.T) {
	got, err := Submit(submission(t, `{
		"type": "resize", "payload": {"n": 1.50}, "priority": "background", "requested_units": 95, "unique": true,
		"tags": ["a", "b"], "max_runtime_s": 90, "max_attempts": 7, "run_at": "2026-02-06T21:10:00.5+01:00",
		"tenant_id": "03000000-0000-0000-0000-000000000004", "fairness_class": "bulk", "lock_key": "door",
		"backoff": {"first_ms": 250, "max_ms": 4000}
	}`), nil, submitConfig, "")
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	same(t, "the job", got, &Spec{
		Lane: Lane{
			Tenant: tenantID(4), Class: "bulk", Priority: lessor.Background, Type: "resize", Unique: true, Units: 95,
			LockKey: "door",
		},
		Payload: json.RawMessage(`{"n": 1.50}`), Tags: []string{"a", "b"}, MaxRuntime: 90 * time.Second, MaxAttempts: 7,
		RunAt: after(500 * time.Millisecond), BackoffFirst: 250 * time.Millisecond, BackoffMax: 4 * time.Second,
	})
}

// TestSubmitBounds has each field on both sides of each of its bounds; "" means accepted.
func TestSubmitBounds(t *testing.T) {
	text := func(field string, n int) string { return fmt.Sprintf(`{%q: %q}`, field, strings.Repeat("é", n)) }
	tags := func(n, length int) string {
		// strings always marshal
		raw, _ := json.Marshal(map[string]any{"tags": strings.Split(strings.Repeat(strings.Repeat("é", length)+",",
			n-1)+strings.Repeat("é", length), ",")})
		return string(raw)
	}
	const (
		uuid = "not a uuid of the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
		when = "must be a time like 2026-02-06T20:10:00.000Z, not "
	)
	for body, want := range map[string]string{
		text("type", 1): "", text("type", 120): "",
		text("type", 0):              "type: must be 1 to 120 characters long, not 0",
		text("type", 121):            "type: must be 1 to 120 characters long, not 121",
		`{"type": "a\u0000"}`:        "type: must be UTF-8 text without NUL characters",
		text("idempotency_key", 1):   "",
		text("idempotency_key", 200): "",
		text("idempotency_key", 0):   "idempotency_key: must be 1 to 200 characters long, not 0",
		text("idempotency_key", 201): "idempotency_key: must be 1 to 200 characters long, not 201",
		text("lock_key", 3):          "", text("lock_key", 200): "",
		text("lock_key", 2):        "lock_key: must be 3 to 200 characters long, not 2",
		text("lock_key", 201):      "lock_key: must be 3 to 200 characters long, not 201",
		text("fairness_class", 1):  "",
		text("fairness_class", 80): "",
		text("fairness_class", 0):  "fairness_class: must be 1 to 80 characters long, not 0",
		text("fairness_class", 81): "fairness_class: must be 1 to 80 characters long, not 81",

		`{"tags": []}`: "", tags(20, 1): "", tags(20, 80): "",
		tags(21, 1):          "tags: must be at most 20, not 21",
		`{"tags": ["a",""]}`: "tags[1]: must be 1 to 80 characters long, not 0",
		tags(1, 81):          "tags[0]: must be 1 to 80 characters long, not 81",

		`{"priority": "high"}`: "", `{"priority": "normal"}`: "", `{"priority": "low"}`: "",
		`{"priority": "background"}`: "",
		`{"priority": "urgent"}`:     `priority: must be high, normal, low or background, not "urgent"`,
		`{"priority": ""}`:           `priority: must be high, normal, low or background, not ""`,

		`{"requested_units": 1}`: "", `{"requested_units": 95}`: "",
		`{"requested_units": 0}`: "requested_units: must be at least 1, not 0",
		`{"requested_units": 96}`: "requested_units: can never fit: " +
			"96 units are asked for and total less reserve is 95",

		`{"max_runtime_s": 1}`: "", `{"max_runtime_s": 31622400}`: "",
		`{"max_runtime_s": 0}`:        "max_runtime_s: must be 1 to 31622400, not 0",
		`{"max_runtime_s": 31622401}`: "max_runtime_s: must be 1 to 31622400, not 31622401",

		`{"max_attempts": 1}`: "", `{"max_attempts": 50}`: "",
		`{"max_attempts": 0}`:  "max_attempts: must be 1 to 50, not 0",
		`{"max_attempts": 51}`: "max_attempts: must be 1 to 50, not 51",

		`{"delay_ms": 0}`: "", `{"delay_ms": 31622400000}`: "",
		`{"delay_ms": -1}`:                                  "delay_ms: must be 0 to 31622400000, not -1",
		`{"delay_ms": 31622400001}`:                         "delay_ms: must be 0 to 31622400000, not 31622400001",
		`{"delay_ms": 1, "run_at": "2026-02-06T20:10:00Z"}`: "delay_ms: must not be given together with run_at",

		`{"run_at": "1970-01-01T00:00:00Z"}`: "", `{"run_at": "9999-12-31T23:59:59.999Z"}`: "",
		`{"run_at": "2026-02-06T20:10:00+14:00"}`: "",
		`{"run_at": "1969-12-31T23:59:59Z"}`:      "run_at: " + when + `"1969-12-31T23:59:59Z"`,
		`{"run_at": "9999-12-31T23:59:59-00:01"}`: "run_at: " + when + `"9999-12-31T23:59:59-00:01"`,
		`{"run_at": "tomorrow"}`:                  "run_at: " + when + `"tomorrow"`,
		`{"run_at": ""}`:                          "run_at: " + when + `""`,

		`{"tenant_id": "03000000-0000-0000-0000-000000000004"}`: "",
		`{"tenant_id": "03000000000000000000000000000004"}`:     "tenant_id: " + uuid,

		`{"backoff": {}}`: "",
		`{"backoff": {"first_ms": 0, "max_ms": 0}}`:  "",
		`{"backoff": {"first_ms": 9, "max_ms": 9}}`:  "",
		`{"backoff": {"first_ms": 10, "max_ms": 9}}`: "backoff.max_ms: must not be less than first_ms (10)",
		`{"backoff": {"first_ms": -1}}`:              "backoff.first_ms: must be 0 to 2592000000, not -1",
		`{"backoff": {"first_ms": 2592000000}}`:      "",
		`{"backoff": {"first_ms": 2592000001}}`:      "backoff.first_ms: must be 0 to 2592000000, not 2592000001",
		`{"backoff": {"max_ms": 1000}}`:              "",
		`{"backoff": {"max_ms": 999}}`:               "",
		`{"backoff": {"max_ms": 2592000000}}`:        "",
		`{"backoff": {"max_ms": 2592000001}}`:        "backoff.max_ms: must be 0 to 2592000000, not 2592000001",
		`{"tags": null, "priority": null}`:           "",
		`{"payload": null}`:                          "",
		`{"max_attempts": 0, "max_runtime_s": 0}`: "max_runtime_s: must be 1 to 31622400, not 0; " +
			"max_attempts: must be 1 to 50, not 0",
		`{"requested_units": 9223372036854775807}`: "requested_units: can never fit: " +
			"9223372036854775807 units are asked for and total less reserve is 95",
		`{"max_runtime_s": 9223372036854775807}`: "max_runtime_s: must be 1 to 31622400, not 9223372036854775807",
		`{"backoff": {"first_ms": 9223372036854775}}`: "backoff.first_ms: must be 0 to 2592000000, " +
			"not 9223372036854775",
		`{"idempotency_key": "a\u0000b"}`:              "idempotency_key: must be UTF-8 text without NUL characters",
		`{"tags": ["a\u0000"]}`:                        "tags[0]: must be UTF-8 text without NUL characters",
		`{"unique": false, "payload": {"unique": 1}}`:  "",
		`{"run_at": "2026-02-06T20:10:00"}`:            "run_at: " + when + `"2026-02-06T20:10:00"`,
		`{"run_at": "1970-01-01T00:00:00+00:01"}`:      "run_at: " + when + `"1970-01-01T00:00:00+00:01"`,
		`{"tenant_id": ""}`:                            "tenant_id: " + uuid,
		`{"priority": "HIGH"}`:                         `priority: must be high, normal, low or background, not "HIGH"`,
		`{"backoff": {"first_ms": 300000}}`:            "",
		`{"backoff": {"first_ms": 300001}}`:            "",
		`{"payload": {"nested": {"deep": [1, null]}}}`: "",
	} {
		spec, err := Submit(submission(t, body), nil, submitConfig, "")
		if err == nil {
			err = Fits(spec, submitConfig, "")
		}
		var got []string
		for _, f := range fieldsOf(err) {
			got = append(got, f.Field+": "+f.Message)
		}
		if s := strings.Join(got, "; "); s != want {
			t.Errorf("%s is refused with %q, want %q", body, s, want)
		}
		if want != "" {
			refused(t, err, lessor.CodeInvalidValue)
		} else if err != nil || spec == nil {
			t.Errorf("%s is refused: %v", body, err)
		}
	}
}

func TestOwnFirstBackoffRaisesTheServersBound(t *testing.T) {
	for first, most := range map[int64]time.Duration{300000: 5 * time.Minute, 300001: 300001 * time.Millisecond} {
		sub := submission(t, fmt.Sprintf(`{"backoff": {"first_ms": %d}}`, first))
		spec, err := Submit(sub, nil, submitConfig, "")
		if err != nil || spec.BackoffMax != most {
			t.Errorf("first_ms %d without max_ms: bound %v, error %v; want %v", first, spec.BackoffMax, err, most)
		}
	}
}

func TestSubmitNamesFieldsOfABatch(t *testing.T) {
	_, err := Submit(submission(t, `{"priority": "urgent", "tags": [""]}`), nil, submitConfig, "jobs[3].")
	wrong(t, err,
		lessor.FieldError{Field: "jobs[3].priority", Message: `must be high, normal, low or background, not "urgent"`},
		lessor.FieldError{Field: "jobs[3].tags[0]", Message: "must be 1 to 80 characters long, not 0"})

	_, err = Submit(&lessor.Submission{}, nil, submitConfig, "jobs[3].")
	refused(t, err, lessor.CodeInvalidRequest)
	same(t, "what is missing", fieldsOf(err), []lessor.FieldError{{Field: "jobs[3].type", Message: "is required"}})
}

func TestPayloadMustBeAnObjectWithinItsLimit(t *testing.T) {
	for _, payload := range []string{`[]`, `"{}"`, `1`, `true`, `[{}]`} {
		_, err := Submit(submission(t, `{"payload": `+payload+`}`), nil, submitConfig, "jobs[0].")
		refused(t, err, lessor.CodeInvalidRequest)
		same(t, "what is wrong with payload "+payload, fieldsOf(err),
			[]lessor.FieldError{{Field: "jobs[0].payload", Message: "must be an object"}})
	}
	for n, code := range map[int]lessor.Code{64: "", 65: lessor.CodePayloadTooLarge} {
		payload := `{"a": "` + strings.Repeat("x", n-len(`{"a": ""}`)) + `"}`
		spec, err := Submit(submission(t, `{"payload": `+payload+`}`), nil, submitConfig, "")
		refused(t, err, code)
		if code == "" {
			same(t, "the payload", string(spec.Payload), payload)
		}
	}
}

func TestSubmissionGetsTheTenantOfItsToken(t *testing.T) {
	const (
		own   = `{"tenant_id": "03000000-0000-0000-0000-000000000004"}`
		other = `{"tenant_id": "03000000-0000-0000-0000-000000000005"}`
	)
	const none = `{"tenant_id": "00000000-0000-0000-0000-000000000000"}`
	for _, c := range []struct {
		name  string
		bound *lessor.TenantID
		body  string
		code  lessor.Code
		want  lessor.TenantID
	}{
		{"any tenant, no tenant", nil, `{}`, "", lessor.TenantID{}},
		{"any tenant, a tenant", nil, other, "", tenantID(5)},
		{"one tenant, no tenant", new(tenantID(4)), `{}`, "", tenantID(4)},
		{"one tenant, its own tenant", new(tenantID(4)), own, "", tenantID(4)},
		{"one tenant, another tenant", new(tenantID(4)), other, lessor.CodeForbidden, lessor.TenantID{}},
		{"one tenant, the tenant of jobs without one", new(tenantID(4)), none, lessor.CodeForbidden, lessor.TenantID{}},
		{
			"one tenant, another tenant and a bad value", new(tenantID(4)),
			strings.Replace(other, "}", `, "max_attempts": 0}`, 1), lessor.CodeForbidden,
			lessor.TenantID{},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, err := Submit(submission(t, c.body), c.bound, submitConfig, "")
			refused(t, err, c.code)
			if c.code == "" {
				same(t, "the tenant", spec.Lane.Tenant, c.want)
			}
		})
	}
}
