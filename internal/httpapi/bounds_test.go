package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// requests says how to send a body of each component: where, and what it needs besides the field under test.
var requests = map[string]struct {
	method, path string
	base         map[string]any
}{
	"Submission": {"POST", scheduling + "/jobs", map[string]any{"type": "x"}},
	"JobBatch": {
		"POST", scheduling + "/jobs/batch", map[string]any{"jobs": []any{map[string]any{"type": "x"}}},
	},
	"LeaseRequest": {
		"POST", scheduling + "/leases/request",
		map[string]any{"worker_id": "w", "types": []string{"none"}},
	},
	"BeatBatch":  {"POST", scheduling + "/leases/heartbeat", map[string]any{"worker_id": "w"}},
	"CancelWait": {"POST", scheduling + "/leases/cancelled", map[string]any{"worker_id": "w"}},
	"MessageAsk": {"POST", scheduling + "/jobs/" + nowhere + "/messages", map[string]any{"text": "x"}},
	"Turn":       {"POST", scheduling + "/leases/turn", map[string]any{"worker_id": "w", "heartbeat": []any{"x"}}},
	"Heartbeat":  {"POST", scheduling + "/leases/" + nowhere + "/heartbeat", map[string]any{"worker_id": "w"}},
	"JournalAppend": {
		"POST", scheduling + "/leases/" + nowhere + "/journal",
		map[string]any{"worker_id": "w", "entries": []any{map[string]any{"key": "k"}}},
	},
	"Completion": {
		"POST", scheduling + "/leases/" + nowhere + "/complete",
		map[string]any{"worker_id": "w", "status": "failed"},
	},
	"Release": {"POST", scheduling + "/leases/" + nowhere + "/release", map[string]any{"worker_id": "w"}},
	"OutputReport": {
		"POST", scheduling + "/leases/" + nowhere + "/output", map[string]any{"worker_id": "w", "chunks": []any{}},
	},
	"CapacityAsk": {"PUT", scheduling + "/capacity", nil},
	"LevelBody":   {"PUT", administration + "/log-level", nil},
	"TokenAsk":    {"POST", "/api/admin/tokens", map[string]any{"role": "viewer"}},
	"Envelope": {"PUT", schedules + "/jobs/nightly", map[string]any{
		"jobId": "nightly", "tenantId": tenantA, "schedule": map[string]any{"type": "cron", "cron": "@daily"},
		"handlerId": "posting", "lockKey": "posting",
	}},
	"Manifest": {
		"POST", schedules + "/manifests",
		map[string]any{"moduleId": "m", "version": "1", "tenantId": tenantA, "jobs": []any{}},
	},
	"TenantAsk": {"PUT", schedules + "/tenants/" + tenantA, nil},
	"BackfillBody": {
		"POST", schedules + "/jobs/none/backfill",
		map[string]any{"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"},
	},
}

// skipped are bounds that one value of one field cannot show.
var skipped = []string{
	"CancelWait.wait_ms", // TestCancelReachesAWorkerThatWaits
	// TestTurnWithAWrongPartChangesNothing of scheduler: the request of a turn is checked as a LeaseRequest.
	"TurnRequest.max_units", "TurnRequest.max_leases", "TurnRequest.wait_ms", "TurnRequest.request_id",
	"TurnRequest.ttl_ms", "TurnRequest.view", "Turn.complete",
	"JournalAppend.entries", "JournalAsk.key", "JournalAsk.kind", // TestJournalAppendChecks of rules
	"CompletionBatch.leases", "LeaseCompletion.status", "BackoffAsk.first_ms", "BackoffAsk.max_ms",
	"Submission.requested_units", "CapacityAsk.total_units",
	// TestBoundsOfDefinitions: the id is in the path too, and jobs of a manifest must differ.
	"Envelope.jobId", "Envelope.requestedUnits", "Manifest.jobs",
}

// What the document says about values is enforced by rules, in another package. Here each bound is met by a value on
// either side: the one inside is not refused for this field, the one outside is.
func TestBoundsOfTheDocumentHold(t *testing.T) {
	s := start(t)
	s.api("PUT", "/drain", `{"draining":true}`, 200) // so that a request with the longest wait_ms is answered at once
	tested := 0
	for _, name := range slices.Sorted(maps.Keys(bounds)) {
		component, field, _ := strings.Cut(name, ".")
		to, ok := requests[component]
		if !ok || slices.Contains(skipped, name) {
			continue
		}
		inside, outside := sides(name)
		for _, v := range inside {
			if s.wrongField(to.method, to.path, to.base, field, v) {
				t.Errorf("%s: %v is refused", name, shown(v))
			}
			tested++
		}
		for _, v := range outside {
			if !s.wrongField(to.method, to.path, to.base, field, v) {
				t.Errorf("%s: %v is not refused", name, shown(v))
			}
			tested++
		}
	}
	if tested < 100 {
		t.Errorf("only %d values were tried", tested)
	}
}

func shown(v any) string { return shorten(fmt.Sprint(v), 60) }

// wrongField sends the request and reports whether it is refused because of the field.
func (s *server) wrongField(method, path string, base map[string]any, field string, v any) bool {
	s.t.Helper()
	body := maps.Clone(base)
	if body == nil {
		body = map[string]any{}
	}
	body[field] = v
	b, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	w := s.call(method, path, string(b), with(s.admin))
	if w.Code != 422 {
		return false
	}
	for _, e := range decoded(s.t, w)["errors"].([]any) {
		if strings.HasPrefix(e.(map[string]any)["field"].(string), field) {
			return true
		}
	}
	return false
}

// sides returns values just inside and just outside what a line of bounds says.
func sides(name string) (inside, outside []any) {
	b := bounds[name]
	if values, ok := b["enum"].([]any); ok {
		inside, outside = values, []any{"", "no such", strings.ToUpper(values[0].(string))}
	}
	number := func(key string, step float64) {
		if v, ok := b[key].(int); ok {
			inside, outside = append(inside, v), append(outside, float64(v)+step)
		}
	}
	number("minimum", -1)
	number("maximum", 1)
	length := func(key, bad string, of func(int) any) {
		n, ok := b[key].(int)
		if !ok {
			return
		}
		inside = append(inside, of(n))
		if bad == "more" {
			outside = append(outside, of(n+1))
		} else if n > 0 {
			outside = append(outside, of(n-1))
		}
	}
	text := func(n int) any { return strings.Repeat("é", n) } // characters count, not bytes
	list := func(n int) any {
		entry := any("x")
		if name == "JobBatch.jobs" {
			entry = map[string]any{"type": "x"}
		}
		return slices.Repeat([]any{entry}, n)
	}
	length("minLength", "less", text)
	length("maxLength", "more", text)
	length("minItems", "less", list)
	length("maxItems", "more", list)
	switch b["format"] {
	case "uuid":
		inside, outside = append(inside, tenantA), append(outside, "", "x", tenantA+"0", "{"+tenantA+"}",
			strings.ReplaceAll(tenantA, "-", ""))
	case "date-time":
		inside = append(inside, "2030-01-01T00:00:00Z", "2030-01-01T00:00:00.5+02:00")
		outside = append(outside, "", "tomorrow", "2030-01-01", "2030-02-30T00:00:00Z")
	}
	return inside, outside
}
