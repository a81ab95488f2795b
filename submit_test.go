package lessor

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestSubmitOptionsBecomeASubmission(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tenant := TenantID{UUID{15: 7}}
	for _, c := range []struct {
		name    string
		payload any
		options *SubmitOptions
		want    string
	}{
		{"nil", nil, nil, `{"type":"mail"}`},
		{"zero", nil, &SubmitOptions{}, `{"type":"mail"}`},
		{"raw payload", json.RawMessage(`{"n":1.50}`), nil, `{"type":"mail","payload":{"n":1.50}}`},
		{"struct payload", struct{ To string }{"ann"}, nil, `{"type":"mail","payload":{"To":"ann"}}`},
		{"delay", nil, &SubmitOptions{Delay: time.Minute}, `{"type":"mail","delay_ms":60000}`},
		{"delay is rounded up", nil, &SubmitOptions{Delay: time.Nanosecond}, `{"type":"mail","delay_ms":1}`},
		{"delay that is over", nil, &SubmitOptions{Delay: -time.Minute}, `{"type":"mail"}`},
		{
			"runtime is rounded up", nil, &SubmitOptions{MaxRuntime: time.Millisecond},
			`{"type":"mail","max_runtime_s":1}`,
		},
		{
			"one bound of the backoff", nil, &SubmitOptions{BackoffMax: time.Second},
			`{"type":"mail","backoff":{"max_ms":1000}}`,
		},
		{
			"all", nil, &SubmitOptions{
				Tenant: tenant, Class: "bulk", Priority: "low", IdempotencyKey: "order-17", RunAt: now, MaxAttempts: 3,
				MaxRuntime: time.Minute, BackoffFirst: time.Second, BackoffMax: time.Minute, Units: 2, Unique: true,
				LockKey: "book", Tags: []string{"a"},
			},
			`{"type":"mail","priority":"low","requested_units":2,"unique":true,` +
				`"idempotency_key":"order-17","tags":["a"],` +
				`"max_runtime_s":60,"max_attempts":3,"run_at":"2026-03-01T12:00:00Z",` +
				`"tenant_id":"` + tenant.String() + `",` +
				`"fairness_class":"bulk","lock_key":"book","backoff":{"first_ms":1000,"max_ms":60000}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := c.options.Submission("mail", c.payload)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(s)
			if err != nil || string(got) != c.want {
				t.Errorf("the body is %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

func TestSubmitOptionsRefuseTwoTimesAndBadPayloads(t *testing.T) {
	both := &SubmitOptions{RunAt: time.Unix(1, 0), Delay: time.Second}
	if _, err := both.Submission("mail", nil); err == nil ||
		!strings.Contains(err.Error(), "RunAt and Delay") {
		t.Errorf("RunAt and Delay together gave %v", err)
	}
	if _, err := (*SubmitOptions)(nil).Submission("mail", func() {}); err == nil {
		t.Error("a function was encoded as a payload")
	}
}
