package rules

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"lessor"
)

var defineConfig = DefineConfig{Submit: submitConfig, Failures: 5, Cooldown: 300 * time.Second, Zone: time.LoadLocation}

const tenantName = "03000000-0000-0000-0000-000000000004"

// envelope reads the body of a definition as the API does, over one that has just what is required. A field that is
// "absent" is left out.
func envelope(t testing.TB, changes string) *lessor.Envelope {
	t.Helper()
	body := map[string]any{
		"jobId": "ledger.nightly", "tenantId": tenantName, "handlerId": "ledger.post", "lockKey": "ledger",
		"schedule": map[string]any{"type": "cron", "cron": "0 2 * * *"},
	}
	var over map[string]any
	if err := json.Unmarshal([]byte(changes), &over); err != nil {
		t.Fatalf("the test's changes %s are not JSON: %v", changes, err)
	}
	maps.Copy(body, over)
	maps.DeleteFunc(body, func(_ string, v any) bool { return v == "absent" })
	raw, _ := json.Marshal(body) // it was JSON a moment ago
	e := &lessor.Envelope{}
	if err := json.Unmarshal(raw, e); err != nil {
		t.Fatalf("the test's body %s is not an envelope: %v", raw, err)
	}
	return e
}

func define(t testing.TB, changes string) *Definition {
	t.Helper()
	d, err := Define(envelope(t, changes), nil, defineConfig, "")
	if err != nil {
		t.Fatalf("%s is refused: %v", changes, err)
	}
	return d
}

func TestDefineFillsInDefaults(t *testing.T) {
	same(t, "the definition", define(t, `{}`), &Definition{
		ID: "ledger.nightly", Tenant: tenantID(4), Schedule: lessor.Schedule{Type: "cron", Cron: "0 2 * * *"},
		Zone:    "UTC",
		Handler: "ledger.post", LockKey: "ledger", Class: "default", Priority: lessor.Normal, Units: 1, MaxAttempts: 5,
		Timeout: 300 * time.Second, BackoffFirst: time.Second, BackoffMax: 5 * time.Minute, Enabled: true,
		Overlap: lessor.OverlapSkip,
		CatchUp: lessor.CatchUpLatest, CatchUpWindow: time.Hour, Failures: 5, Cooldown: 300 * time.Second,
		Payload: json.RawMessage(`{}`),
	})
}

func TestDefineKeepsWhatWasAskedFor(t *testing.T) {
	got := define(t, `{
		"schedule": {"type": "interval", "seconds": 90}, "maxAttempts": 50, "timeoutSeconds": 3600,
		"fairnessClass": "bulk", "isEnabled": false,
		"payload": {"n": 1.5}, "priority": "low", "requestedUnits": 95,
			"timezone": "Europe/Berlin", "overlap": "queueOne",
		"catchUp": "all",
		"catchUpWindowSeconds": 60, "jitterSeconds": 7, "circuit": {"failures": 2, "cooldownSeconds": 3},
		"backoff": {"firstMs": 5, "maxMs": 6}, "paused": true, "moduleId": "books"
	}`)
	same(t, "the definition", got, &Definition{
		ID: "ledger.nightly", Tenant: tenantID(4), Schedule: lessor.Schedule{Type: "interval", Seconds: 90},
		Zone:    "Europe/Berlin",
		Handler: "ledger.post", LockKey: "ledger", Class: "bulk", Priority: lessor.Low, Units: 95, MaxAttempts: 50,
		Timeout: time.Hour, TimeoutSet: true, Paused: true, Module: "books",
		BackoffFirst: 5 * time.Millisecond, BackoffMax: 6 * time.Millisecond, Overlap: lessor.OverlapQueueOne,
		CatchUp:       lessor.CatchUpAll,
		CatchUpWindow: time.Minute, Jitter: 7 * time.Second, Failures: 2, Cooldown: 3 * time.Second,
		Payload: json.RawMessage(`{"n":1.5}`),
	})
	if got.Ticking() {
		t.Error("a definition that is not enabled has ticks")
	}
}

// TestDefineBounds has each field on both sides of each of its bounds; "" means accepted.
func TestDefineBounds(t *testing.T) {
	text := func(field string, n int) string { return fmt.Sprintf(`{%q: %q}`, field, strings.Repeat("é", n)) }
	long := func(field string, n, least, most int) string {
		return fmt.Sprintf("%s: must be %d to %d characters long, not %d", field, least, most, n)
	}
	interval := func(n string) string { return `{"schedule": {"type": "interval", "seconds": ` + n + `}}` }
	cron := func(expr string) string { return fmt.Sprintf(`{"schedule": {"type": "cron", "cron": %q}}`, expr) }
	cases := map[string]string{
		interval("1"): "", interval("0"): "schedule.seconds: must be 1 to 3162240000, not 0",
		interval("3162240000"): "", interval("3162240001"): "schedule.seconds: must be 1 to 3162240000, not 3162240001",
		cron("@daily"): "", cron("* "): long("schedule.cron", 2, 3, 120),
		`{"maxAttempts": 1}`: "", `{"maxAttempts": 0}`: "maxAttempts: must be 1 to 50, not 0",
		`{"maxAttempts": 50}`: "", `{"maxAttempts": 51}`: "maxAttempts: must be 1 to 50, not 51",
		`{"timeoutSeconds": 1}`: "", `{"timeoutSeconds": 0}`: "timeoutSeconds: must be 1 to 3600, not 0",
		`{"maxRuntimeSeconds": 604800}`: "",
		`{"maxRuntimeSeconds": 604801}`: "maxRuntimeSeconds: must be 1 to 604800, not 604801",
		`{"timeoutSeconds": 3600}`:      "", `{"timeoutSeconds": 3601}`: "timeoutSeconds: must be 1 to 3600, not 3601",
		`{"requestedUnits": 0}`: "requestedUnits: must be at least 1, not 0", `{"requestedUnits": 95}`: "",

		`{"requestedUnits": 96}`: "requestedUnits: can never fit: 96 units are asked for and total less reserve is 95",

		`{"catchUpWindowSeconds": 0}`:                        "",
		`{"catchUpWindowSeconds": -1}`:                       "catchUpWindowSeconds: must be 0 to 604800, not -1",
		`{"catchUpWindowSeconds": 604800}`:                   "",
		`{"catchUpWindowSeconds": 604801}`:                   "catchUpWindowSeconds: must be 0 to 604800, not 604801",
		`{"jitterSeconds": 86400}`:                           "",
		`{"jitterSeconds": 86401}`:                           "jitterSeconds: must be 0 to 86400, not 86401",
		`{"circuit": {"failures": 1, "cooldownSeconds": 1}}`: "",
		`{"circuit": {"failures": 0}}`:                       "circuit.failures: must be 1 to 1000, not 0",
		`{"circuit": {"cooldownSeconds": 0}}`:                "circuit.cooldownSeconds: must be 1 to 2592000, not 0",
		`{"backoff": {"firstMs": 10, "maxMs": 9}}`:           "backoff.maxMs: must not be less than firstMs (10)",

		`{"timezone": "Mars/Olympus"}`: `timezone: must be the IANA name of a time zone, ` +
			`like Europe/Berlin, not "Mars/Olympus"`,
		`{"timezone": "Local"}`: `timezone: must be the IANA name of a time zone, ` +
			`like Europe/Berlin, not "Local"`,
		`{"overlap": "sometimes"}`:         `overlap: must be skip, queueOne, allow or cancelPrevious, not "sometimes"`,
		`{"catchUp": "some"}`:              `catchUp: must be latest, none or all, not "some"`,
		`{"priority": "urgent"}`:           `priority: must be high, normal, low or background, not "urgent"`,
		`{"schedule": {"type": "yearly"}}`: `schedule.type: must be cron or interval, not "yearly"`,

		`{"tenantId": "me"}`: "tenantId: not a uuid of the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
		`{"tenantId": "00000000-0000-0000-0000-000000000000"}`: "tenantId: must not be the nil uuid: " +
			"a definition belongs to a tenant",

		`{"schedule": {"type": "cron", "cron": "@daily", "seconds": 3}}`: "schedule.seconds: " +
			"is for the type interval",
		`{"schedule": {"type": "interval", "cron": "@daily", "seconds": 3}}`: "schedule.cron: is for the type cron",
	}
	for _, f := range []struct {
		name        string
		least, most int
	}{{"jobId", 3, 120}, {"handlerId", 3, 120}, {"lockKey", 3, 200}, {"fairnessClass", 1, 80}} {
		cases[text(f.name, f.least)], cases[text(f.name, f.most)] = "", ""
		cases[text(f.name, f.least-1)], cases[text(f.name, f.most+1)] = long(f.name, f.least-1, f.least,
			f.most), long(f.name, f.most+1, f.least, f.most)
	}
	for body, want := range cases {
		_, err := Define(envelope(t, body), nil, defineConfig, "")
		if got := firstField(err); got != want {
			t.Errorf("%s is refused with %q, want %q", body, got, want)
		}
	}
	for _, expr := range []string{
		"60 * * * *", "*/0 * * * *", "0 0 30 2 *", "TZ=0 0 0 * * *", "0 0 0 * * *",
		"@reboot",
	} {
		if _, err := Define(envelope(t, cron(expr)), nil, defineConfig, ""); !strings.HasPrefix(firstField(err),
			"schedule.cron: ") {
			t.Errorf("%q: %v", expr, err)
		}
	}
}

// firstField is the first wrong field of a refusal and what is wrong with it.
func firstField(err error) string {
	if err == nil {
		return ""
	}
	e, ok := err.(*lessor.Error) //nolint:errorlint // rules make their refusals themselves
	if !ok || len(e.Fields) == 0 {
		return err.Error()
	}
	return e.Fields[0].Field + ": " + e.Fields[0].Message
}

func TestDefineNamesWhatIsMissing(t *testing.T) {
	for _, field := range []string{"jobId", "tenantId", "handlerId", "lockKey", "schedule"} {
		_, err := Define(envelope(t, fmt.Sprintf(`{%q: "absent"}`, field)), nil, defineConfig, "jobs[2].")
		if got, want := firstField(err), "jobs[2]."+field+": is required"; got != want ||
			lessor.CodeOf(err) != lessor.CodeInvalidRequest {
			t.Errorf("without %s: %v, want %q", field, err, want)
		}
	}
	for body, want := range map[string]string{
		`{"schedule": {}}`:                   "schedule.type: is required",
		`{"schedule": {"type": "cron"}}`:     "schedule.cron: is required",
		`{"schedule": {"type": "interval"}}`: "schedule.seconds: is required",
		`{"payload": [1]}`:                   "payload: must be an object",
	} {
		_, err := Define(envelope(t, body), nil, defineConfig, "")
		if got := firstField(err); got != want || lessor.CodeOf(err) != lessor.CodeInvalidRequest {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
	big := fmt.Sprintf(`{"payload": {"a": %q}}`, strings.Repeat("x", 64))
	if _, err := Define(envelope(t, big), nil, defineConfig, ""); lessor.CodeOf(err) != lessor.CodePayloadTooLarge {
		t.Errorf("a payload over the limit: %v", err)
	}
}

func TestCallerOfOneTenantDefinesForItOnly(t *testing.T) {
	wall := tenantID(4)
	d, err := Define(envelope(t, `{"tenantId": "absent"}`), &wall, defineConfig, "")
	if err != nil || d.Tenant != wall {
		t.Errorf("without a tenant: %v, %v", d, err)
	}
	other := tenantID(5)
	if _, err := Define(envelope(t, `{}`), &other, defineConfig, ""); lessor.CodeOf(err) != lessor.CodeForbidden {
		t.Errorf("another tenant's: %v", err)
	}
}

func TestSameDefinitionHasTheSameContent(t *testing.T) {
	a, b := define(t, `{"payload": {"a": 1, "b": 2}}`), define(t, `{"payload": {"b": 2, "a": 1}}`)
	a.CreatedAt, a.UpdatedAt, a.NextTick = 7, 8, 9
	if !a.Same(b) {
		t.Error("its ticks, or the order of a payload's fields, make it another")
	}
	for _, change := range []string{
		`{"payload": {"a": 2}}`, `{"maxAttempts": 4}`, `{"isEnabled": false}`,
		`{"timezone": "Europe/Berlin"}`, `{"circuit": {"failures": 4}}`, `{"paused": true}`, `{"moduleId": "books"}`,
	} {
		if define(t, `{}`).Same(define(t, change)) {
			t.Errorf("%s makes no difference", change)
		}
	}
}

func TestTimeoutTakesPrecedenceOverTheLongestRun(t *testing.T) {
	for ask, want := range map[string]time.Duration{
		`{}`:                          5 * time.Minute,
		`{"maxRuntimeSeconds": 7200}`: 2 * time.Hour,
		`{"maxRuntimeSeconds": 7200, "timeoutSeconds": 60}`:   time.Minute,
		`{"maxRuntimeSeconds": 30, "timeoutSeconds": 3600}`:   time.Hour,
		`{"maxRuntimeSeconds": 3600}`:                         time.Hour,
		`{"maxRuntimeSeconds": 604800}`:                       7 * 24 * time.Hour,
		`{"maxRuntimeSeconds": null, "timeoutSeconds": null}`: 5 * time.Minute,
	} {
		d := define(t, ask)
		same(t, ask, d.Timeout, want)
		shown := ShowDefinition(d)
		has := strings.Contains(ask, `"timeoutSeconds": `) || want == 5*time.Minute // the default
		if shown.MaxRuntimeSeconds != int64(want.Seconds()) || (shown.TimeoutSeconds != nil) != has {
			t.Errorf("%s shows maxRuntimeSeconds %d, timeoutSeconds %v", ask, shown.MaxRuntimeSeconds,
				shown.TimeoutSeconds)
		}
	}
}

// TestDefaultTimeoutThatWasShownGivesWay: the default that a reader sees does not take precedence over the
// maxRuntimeSeconds that it changes. What an owner sets does.
func TestDefaultTimeoutThatWasShownGivesWay(t *testing.T) {
	const both = `{"maxRuntimeSeconds": 7200, "timeoutSeconds": 300}`
	for old, want := range map[string]time.Duration{
		`{}`:                          2 * time.Hour,
		`{"maxRuntimeSeconds": 7200}`: 2 * time.Hour,
		`{"timeoutSeconds": 60}`:      5 * time.Minute,
		both:                          5 * time.Minute,
	} {
		d := define(t, both)
		if err := Inherit(d, envelope(t, both), define(t, old)); err != nil {
			t.Fatal(err)
		}
		same(t, old, d.Timeout, want)
	}
}

// TestShownDefinitionIsItsOwnEnvelope: what is shown can be sent back and changes nothing, also if the server's own
// defaults are finer than the unit in which they are shown.
func TestShownDefinitionIsItsOwnEnvelope(t *testing.T) {
	cfg := defineConfig
	cfg.Cooldown = 1500 * time.Millisecond
	for _, changes := range []string{
		`{}`, `{"maxRuntimeSeconds": 604800}`,
		`{"schedule": {"type": "interval", "seconds": 60}, "payload": {"n": 1.50}}`,
	} {
		d, err := Define(envelope(t, changes), nil, cfg, "")
		if err != nil {
			t.Fatal(err)
		}
		Begin(d, utcTicks, after(0))
		d.Module, d.Paused = "books", true
		raw, err := json.Marshal(ShowDefinition(d))
		if err != nil {
			t.Fatal(err)
		}
		var e lessor.Envelope
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		back, err := Define(&e, nil, cfg, "")
		if err == nil {
			err = Inherit(back, &e, d)
		}
		if err != nil || !back.Same(d) || back.Cooldown != d.Cooldown {
			t.Errorf("%s came back as %+v, %v", changes, back, err)
		}
	}
}

func TestReplacementInheritsWhatItsEnvelopeLeavesOut(t *testing.T) {
	old := define(t, `{}`)
	old.Module, old.Paused = "books", true
	for changes, want := range map[string]string{
		`{}`:                      "",
		`{"moduleId": "books"}`:   "",
		`{"paused": false}`:       "",
		`{"moduleId": "reports"}`: "moduleId: only a manifest sets it: send the definition's own, or leave it out",
	} {
		d, e := define(t, changes), envelope(t, changes)
		err := Inherit(d, e, old)
		same(t, changes, firstField(err), want)
		if err == nil && (d.Module != "books" || d.Paused != (e.Paused == nil)) {
			t.Errorf("%s: module %q, paused %v", changes, d.Module, d.Paused)
		}
	}
	none := &lessor.Envelope{}
	if d := define(t, `{"paused": true}`); Inherit(d, none, nil) != nil || !d.Paused || d.Module != "" {
		t.Errorf("a new one: %+v", d)
	}
	if err := Inherit(define(t, `{"moduleId": "books"}`), none, nil); lessor.CodeOf(err) != lessor.CodeInvalidValue {
		t.Errorf("a new one of a module: %v", err)
	}
}

func utcTicks(d *Definition) Ticker { return TickerOf(d, time.UTC) }

func TestReplacedDefinitionKeepsItsPlace(t *testing.T) {
	old := define(t, `{"schedule": {"type": "interval", "seconds": 60}}`)
	Begin(old, utcTicks, after(0))
	same(t, "first tick", old.NextTick, after(time.Minute))

	kept := define(t, `{"schedule": {"type": "interval", "seconds": 60}, "maxAttempts": 3}`)
	Replace(kept, old, utcTicks, after(30*time.Second))
	same(t, "tick of the same schedule", kept.NextTick, after(time.Minute))
	same(t, "stored at", kept.CreatedAt, after(0))
	same(t, "changed at", kept.UpdatedAt, after(30*time.Second))

	other := define(t, `{"schedule": {"type": "interval", "seconds": 50}}`)
	Replace(other, old, utcTicks, after(30*time.Second))
	same(t, "tick of another schedule", other.NextTick, after(80*time.Second))

	moved := define(t, `{"schedule": {"type": "interval", "seconds": 60}, "timezone": "Asia/Tokyo"}`)
	Replace(moved, old, utcTicks, after(30*time.Second))
	same(t, "anchor of an interval in another zone", moved.Anchor, after(0))
	same(t, "tick of an interval in another zone", moved.NextTick, after(time.Minute))
	daily := define(t, `{"schedule": {"type": "cron", "cron": "0 0 * * *"}}`)
	Begin(daily, utcTicks, after(0))
	tokyo := define(t, `{"schedule": {"type": "cron", "cron": "0 0 * * *"}, "timezone": "Etc/GMT-1"}`)
	Replace(tokyo, daily, func(d *Definition) Ticker { return TickerOf(d, time.FixedZone("", 3600)) }, after(0))
	if hour := daily.NextTick.Sub(tokyo.NextTick) % (24 * time.Hour); (hour+24*time.Hour)%(24*time.Hour) != time.Hour {
		t.Errorf("midnight one zone to the east is %s, at UTC %s", tokyo.NextTick, daily.NextTick)
	}

	off := define(t, `{"schedule": {"type": "interval", "seconds": 60}, "isEnabled": false}`)
	Replace(off, old, utcTicks, after(30*time.Second))
	same(t, "tick of a disabled one", off.NextTick, 0)
	on := define(t, `{"schedule": {"type": "interval", "seconds": 60}}`)
	Replace(on, off, utcTicks, after(10*time.Minute+time.Second))
	same(t, "first tick after it was enabled", on.NextTick, after(11*time.Minute))
}

func TestPausedTimeIsNotCaughtUp(t *testing.T) {
	d := define(t, `{"schedule": {"type": "interval", "seconds": 60}}`)
	Begin(d, utcTicks, after(0))
	if !SetPaused(d, true, utcTicks(d), after(time.Second)) || d.NextTick != 0 || d.DueAt != 0 || !d.Paused {
		t.Errorf("paused: %+v", d)
	}
	if SetPaused(d, true, utcTicks(d), after(2*time.Second)) {
		t.Error("pausing twice changed it")
	}
	if !SetPaused(d, false, utcTicks(d), after(time.Hour)) {
		t.Error("resuming changed nothing")
	}
	same(t, "first tick after the pause", d.NextTick, after(time.Hour+time.Minute))
}
