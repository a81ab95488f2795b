package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
)

// Both sides of each bound of 002's envelope that TestBoundsOfTheDocumentHold cannot show: ids, which stand in the path
// too, and what is inside an object.
func TestBoundsOfDefinitions(t *testing.T) {
	s := start(t)
	cron := func(expr string) any { return map[string]any{"type": "cron", "cron": expr} }
	every := func(seconds any) any { return map[string]any{"type": "interval", "seconds": seconds} }
	minutes := func(length int) string {
		return strings.Repeat("0,", (length-9)/2) + strings.Repeat("0", (length-9)%2+1) + " * * * *"
	}
	for _, tt := range []struct {
		field string
		value any
		wrong string // the field that is named, "" = accepted
		says  string
	}{
		{"jobId", "ab", "jobId", "3 to 120"},
		{"jobId", "abc", "", ""},
		{"jobId", strings.Repeat("é", 120), "", ""},
		{"jobId", strings.Repeat("é", 121), "jobId", "3 to 120"},
		{"jobId", "a/b c?d%#", "", ""},
		{"schedule", cron("@d"), "schedule.cron", "3 to 120"},
		{"schedule", cron("@da"), "schedule.cron", ""}, // long enough, and no expression
		{"schedule", cron(minutes(120)), "", ""},
		{"schedule", cron(minutes(121)), "schedule.cron", "3 to 120"},
		{"schedule", cron("*/0 * * * *"), "schedule.cron", ""},
		{"schedule", cron("60 * * * *"), "schedule.cron", ""},
		{"schedule", cron("0 0 30 2 *"), "schedule.cron", ""},
		{"schedule", cron("TZ=0 * * * * *"), "schedule.cron", ""},
		{"schedule", every(0), "schedule.seconds", ""},
		{"schedule", every(1), "", ""},
		{"schedule", every(1.5), "schedule.seconds", ""},
		{"schedule", map[string]any{"type": "daily"}, "schedule.type", ""},
		{"schedule", map[string]any{"type": "cron", "cron": "@daily", "seconds": 5}, "schedule.seconds", ""},
		{"requestedUnits", 0, "requestedUnits", ""},
		{"requestedUnits", 95, "", ""},
		{"requestedUnits", 96, "requestedUnits", ""},
		{"timezone", "Europe/Berlin", "", ""},
		{"timezone", "Berlin", "timezone", "IANA"},
		{"tenantId", "00000000-0000-0000-0000-000000000000", "tenantId", "nil"},
		{"circuit", map[string]any{"failures": 0}, "circuit.failures", ""},
		{"circuit", map[string]any{"failures": 1, "cooldownSeconds": 1}, "", ""},
		{"circuit", map[string]any{"cooldownSeconds": 0}, "circuit.cooldownSeconds", ""},
		{"backoff", map[string]any{"firstMs": -1}, "backoff.firstMs", ""},
		{"backoff", map[string]any{"firstMs": 2, "maxMs": 1}, "backoff", ""},
	} {
		body := maps.Clone(requests["Envelope"].base)
		body[tt.field] = tt.value
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		w := s.call("PUT", schedules+"/jobs/"+url.PathEscape(body["jobId"].(string)), string(b), with(s.admin))
		name := fmt.Sprintf("%s = %s", tt.field, shown(tt.value))
		switch {
		case tt.wrong == "" && w.Code/100 != 2:
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		case tt.wrong == "":
			s.call("DELETE", schedules+"/jobs/"+url.PathEscape(body["jobId"].(string)), "", with(s.admin))
		case w.Code != 422 || !strings.Contains(w.Body.String(), `"field":"`+tt.wrong) ||
			!strings.Contains(w.Body.String(), tt.says):
			t.Errorf("%s: %d %s; want 422 for %s (%s)", name, w.Code, w.Body, tt.wrong, tt.says)
		}
	}
	for n, want := range map[int]int{1000: 200, 1001: 422} {
		jobs := make([]string, n)
		for i := range jobs {
			jobs[i] = definition(fmt.Sprintf("job-%d", i), tenantA)
		}
		w := s.call("POST", schedules+"/manifests",
			`{"moduleId":"m","version":"1","tenantId":"`+tenantA+`","dryRun":true,"jobs":[`+strings.Join(jobs,
				",")+`]}`, with(s.admin))
		if w.Code != want {
			t.Errorf("a manifest of %d jobs: %d %s", n, w.Code, shorten(w.Body.String(), 200))
		}
	}
}
