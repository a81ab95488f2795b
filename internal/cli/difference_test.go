package cli

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lessor"
)

// definitionWith is a stored definition in which fields are replaced.
func definitionWith(t *testing.T, replaced string) lessor.Definition {
	t.Helper()
	const stored = `{
		"jobId":"nightly","tenantId":"11111111-1111-4111-8111-111111111111",
		"schedule":{"type":"cron","cron":"0 2 * * *"},"handlerId":"posting","lockKey":"ledger","maxAttempts":9,
		"timeoutSeconds":300,"fairnessClass":"default","isEnabled":true,"payload":{"a":[1,2],"b":{"c":1.50}},
		"priority":"normal","requestedUnits":1,"timezone":"UTC",
		"overlap":"skip","catchUp":"latest","catchUpWindowSeconds":3600,"jitterSeconds":0,
		"circuit":{"failures":3,"cooldownSeconds":300},"backoff":{"firstMs":1000,"maxMs":300000},"paused":true
	}`
	fields := map[string]json.RawMessage{}
	for _, object := range []string{stored, replaced} {
		if err := json.Unmarshal([]byte(object), &fields); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	var d lessor.Definition
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDifferencesAreShownFieldByField(t *testing.T) {
	for _, tt := range []struct {
		name, is string
		want     []string
	}{
		{"a default of the server", `{"maxAttempts":5}`, []string{"maxAttempts: 9 → 5"}},
		{
			"another kind of schedule, another payload",
			`{"schedule":{"type":"interval","seconds":60},"payload":{"a":[2],"b":3}}`,
			[]string{
				"payload.a: [1,2] → [2]", "payload.b: nothing → 3", "payload.b.c: 1.50 → nothing",
				`schedule.cron: "0 2 * * *" → nothing`, "schedule.seconds: nothing → 60",
				`schedule.type: "cron" → "interval"`,
			},
		},
		{
			"part of an object",
			`{"circuit":{"failures":4,"cooldownSeconds":300}}`,
			[]string{"circuit.failures: 3 → 4"},
		},
		{
			"nothing that a manifest sets",
			`{"paused":false,"updatedAt":"2026-02-06T20:10:00Z"}`,
			[]string{"circuit or backoff return to the server's defaults"},
		},
	} {
		if diff := cmp.Diff(tt.want, differences(definitionWith(t, `{}`), definitionWith(t, tt.is))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
