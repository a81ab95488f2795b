package cli

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lessor"
)

const storedDefinition = `{"jobId":"nightly","tenantId":"11111111-1111-4111-8111-111111111111","schedule":{"type":"cron","cron":"0 2 * * *"},
	"handlerId":"posting","lockKey":"ledger","maxAttempts":9,"timeoutSeconds":300,"fairnessClass":"default","isEnabled":true,
	"payload":{"a":[1,2],"b":{"c":1.50}},"priority":"normal","requestedUnits":1,"timezone":"UTC","overlap":"skip","catchUp":"latest",
	"catchUpWindowSeconds":3600,"jitterSeconds":0,"circuit":{"failures":3,"cooldownSeconds":300},"backoff":{"firstMs":1000,"maxMs":300000},"paused":true}`

func TestDifferencesAreToldFieldByField(t *testing.T) {
	for _, tt := range []struct {
		name, asked string
		want        []string
	}{
		{
			"left out means the default",
			`{"jobId":"nightly","schedule":{"type":"cron","cron":"0 2 * * *"},"handlerId":"posting","lockKey":"ledger","payload":{"a":[1,2],"b":{"c":1.50}}}`,
			[]string{"maxAttempts: 9 → 5"},
		},
		{
			"another kind of schedule, another payload",
			`{"jobId":"nightly","schedule":{"type":"interval","seconds":60},"handlerId":"posting","lockKey":"ledger","maxAttempts":9,"payload":{"a":[2],"b":3}}`,
			[]string{
				"payload.a: [1,2] → [2]", "payload.b: nothing → 3", "payload.b.c: 1.50 → nothing", `schedule.cron: "0 2 * * *" → nothing`,
				"schedule.seconds: nothing → 60", `schedule.type: "cron" → "interval"`,
			},
		},
		{
			"part of an object",
			`{"jobId":"nightly","schedule":{"type":"cron","cron":"0 2 * * *"},"handlerId":"posting","lockKey":"ledger","maxAttempts":9,
				"payload":{"a":[1,2],"b":{"c":1.50}},"circuit":{"failures":4}}`,
			[]string{"circuit.failures: 3 → 4"},
		},
		{
			"only what the server alone knows",
			`{"jobId":"nightly","schedule":{"type":"cron","cron":"0 2 * * *"},"handlerId":"posting","lockKey":"ledger","maxAttempts":9,"payload":{"a":[1,2],"b":{"c":1.50}}}`,
			[]string{"circuit or backoff return to the server's defaults"},
		},
	} {
		var stored lessor.Definition
		var asked lessor.Envelope
		if err := json.Unmarshal([]byte(storedDefinition), &stored); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(tt.asked), &asked); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, differences(stored, asked)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
