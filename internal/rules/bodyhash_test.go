package rules

import (
	"encoding/json"
	"testing"

	"lessor"
)

func hashOf(t testing.TB, body string) [32]byte {
	t.Helper()
	sub := submission(t, body)
	sub.IdempotencyKey = new("k1")
	spec, err := Submit(sub, nil, submitConfig, "")
	if err != nil {
		t.Fatalf("%s is refused: %v", body, err)
	}
	return spec.BodyHash
}

func TestBodiesThatMeanTheSameHashTheSame(t *testing.T) {
	for _, c := range []struct{ name, one, two string }{
		{"every default spelt out", `{}`, `{
			"payload": {}, "priority": "normal", "requested_units": 1, "unique": false, "tags": [], "max_attempts": 5,
			"fairness_class": "default", "backoff": {"first_ms": 1000, "max_ms": 300000}}`},
		{"null", `{}`, `{"payload": null, "priority": null, "requested_units": null, "unique": null, "tags": null,
			"run_at": null, "backoff": null}`},
		{"no tags", `{}`, `{"tags": []}`},
		{"spacing", `{"payload": {"a":1,"b":[1,2]}}`, `{"payload": { "a" : 1 , "b" : [ 1, 2 ] } }`},
		{"order of fields", `{"payload": {"a":1,"b":{"c":2,"d":3}}}`, `{"payload": {"b":{"d":3,"c":2},"a":1}}`},
		{"escapes", `{"payload": {"a":"é<"}}`, `{"payload": {"a":"\u00e9\u003c"}}`},
		{"delays", `{"delay_ms": 600000}`, `{"delay_ms": 300000}`},
		{"zone of run_at", `{"run_at": "2026-02-06T21:10:00+01:00"}`, `{"run_at": "2026-02-06T20:10:00.000Z"}`},
	} {
		if hashOf(t, c.one) != hashOf(t, c.two) {
			t.Errorf("%s: %s and %s hash differently", c.name, c.one, c.two)
		}
	}
}

func TestBodiesThatDifferHashDifferently(t *testing.T) {
	seen := map[[32]byte]string{}
	for _, body := range []string{
		`{}`, `{"type": "resize"}`, `{"priority": "high"}`, `{"requested_units": 2}`, `{"unique": true}`,
		`{"tags": ["a"]}`, `{"tags": ["a", "b"]}`,
		`{"tags": ["b", "a"]}`, `{"max_runtime_s": 1}`, `{"max_attempts": 4}`, `{"run_at": "2026-02-06T20:10:00Z"}`,
		`{"fairness_class": "bulk"}`,
		`{"lock_key": "door"}`, `{"backoff": {"first_ms": 999}}`, `{"backoff": {"max_ms": 299999}}`,
		`{"payload": {"a": 1}}`, `{"payload": {"a": 1.0}}`, `{"payload": {"a": 1e0}}`, `{"payload": {"a": "1"}}`,
		`{"payload": {"a": [1]}}`,
		`{"payload": {"a": [1, 2]}}`, `{"payload": {"a": [2, 1]}}`, `{"payload": {"a": null}}`, `{"payload": {"b": 1}}`,
		`{"payload": {"a": 9007199254740993}}`, `{"payload": {"a": 9007199254740992}}`, `{"payload": {"a": 1e400000}}`,
		`{"payload": {"a": 1e400001}}`,
	} {
		h := hashOf(t, body)
		if h == ([32]byte{}) {
			t.Errorf("%s has no hash", body)
		}
		if other, taken := seen[h]; taken {
			t.Errorf("%s and %s hash the same", body, other)
		}
		seen[h] = body
	}
}

func TestJobWithoutKeyHasNoHash(t *testing.T) {
	spec, err := Submit(submission(t, `{"payload": {"a": 1}}`), nil, submitConfig, "")
	if err != nil || spec.BodyHash != ([32]byte{}) {
		t.Errorf("hash %x, error %v; want none: nobody asks for it", spec.BodyHash, err)
	}
}

// FuzzSubmit holds that no body makes Submit panic, and that what is accepted is the same body when it is submitted
// again: as it was, and as its job is shown.
func FuzzSubmit(f *testing.F) {
	for _, body := range []string{
		`{"type": "a"}`, `{"type": "", "tags": [""], "priority": "x"}`, `{"type": "a", "tags": []}`,
		`{"type": "a", "payload": {"n": 1e400000, "s": "\ud800"}}`,
		`{"type": "a", "payload": []}`, `{"type": "a", "run_at": "9999-12-31T23:59:59-14:00"}`,
		`{"type": "a", "run_at": "2026-02-06T20:10:00.1234Z"}`, `{"type": "a", "delay_ms": 1}`,
		`{"type": "a", "tenant_id": "03000000-0000-0000-0000-000000000004", "unique": true, "lock_key": "door"}`,
		`{"type": "a", "max_runtime_s": 9223372036854775807, ` +
			`"max_attempts": -1, "backoff": {"first_ms": 3, "max_ms": 2}}`,
		`{"type": "a", "requested_units": 95, "max_runtime_s": 1, "max_attempts": 50, "backoff": {"first_ms": 300001}}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var sub lessor.Submission
		if json.Unmarshal([]byte(body), &sub) != nil {
			return
		}
		if sub.IdempotencyKey == nil {
			sub.IdempotencyKey = new("k1")
		}
		spec, err := Submit(&sub, nil, submitConfig, "")
		if err != nil {
			if lessor.CodeOf(err) == "" {
				t.Fatalf("refused with a fault: %v", err)
			}
			return
		}
		again, err := Submit(&sub, nil, submitConfig, "")
		if err != nil || again.BodyHash != spec.BodyHash {
			t.Fatalf("the same body again: error %v, hash %x, want %x", err, again.BodyHash, spec.BodyHash)
		}
		back := resubmission(Show(&Standing{Spec: spec, Place: InQueue, Turn: Turn{MaxAttempts: spec.MaxAttempts}}),
			spec)
		again, err = Submit(back, nil, submitConfig, "")
		if err != nil || again.BodyHash != spec.BodyHash {
			t.Fatalf("the job as it is shown, submitted again: error %v, or another hash than the body %s", err, body)
		}
	})
}

// resubmission asks for the job that is shown. The backoff is not shown, so it is the spec's.
func resubmission(j lessor.Job, s *Spec) *lessor.Submission {
	sub := &lessor.Submission{
		Type: &j.Type, Payload: j.Payload, Priority: new(j.Priority.String()),
		RequestedUnits: new(int64(j.RequestedUnits)), Unique: &j.Unique,
		IdempotencyKey: j.IdempotencyKey, Tags: j.Tags, MaxRuntimeS: j.MaxRuntimeS,
		MaxAttempts: new(int64(j.MaxAttempts)),
		TenantID:    new(j.TenantID.String()), FairnessClass: &j.FairnessClass, LockKey: j.LockKey,
		Backoff: &lessor.BackoffAsk{
			FirstMS: new(s.BackoffFirst.Milliseconds()),
			MaxMS:   new(s.BackoffMax.Milliseconds()),
		},
	}
	if j.RunAt != 0 {
		sub.RunAt = new(j.RunAt.String())
	}
	return sub
}
