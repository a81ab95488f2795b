package rules

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"lessor"
)

func manifest(t testing.TB, body string) *lessor.Manifest {
	t.Helper()
	m := &lessor.Manifest{}
	if err := json.Unmarshal([]byte(body), m); err != nil {
		t.Fatalf("the test's body %s is not a manifest: %v", body, err)
	}
	return m
}

func entry(id string) string {
	return fmt.Sprintf(`{"jobId": %q, "handlerId": "ledger.post", "lockKey": "ledger",
		"schedule": {"type": "interval", "seconds": 5}}`, id)
}

func books(jobs ...string) string {
	return fmt.Sprintf(`{"moduleId": "books", "version": "1", "tenantId": %q, "prune": true, "jobs": [%s]}`, tenantName,
		strings.Join(jobs, ","))
}

func plan(t testing.TB, body string) (*ManifestPlan, error) {
	t.Helper()
	return Manifest(manifest(t, body), nil, func(e *lessor.Envelope, prefix string) (*Definition, error) {
		return Define(e, nil, defineConfig, prefix)
	})
}

func TestManifestSaysWhatItDoes(t *testing.T) {
	p, err := plan(t, books(entry("new"), entry("same"), entry("other")))
	if err != nil {
		t.Fatal(err)
	}
	stored := func(id, module string, attempts int) *Definition {
		d := define(t, entry(id))
		d.Module, d.Version, d.MaxAttempts = module, "1", attempts
		return d
	}
	a, removed, err := p.Against(map[string]*Definition{
		"same": stored("same", "books", 5), "other": stored("other", "books", 4), "old": stored("old", "books", 5),
		"alien": stored("alien", "cars", 5),
	})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "answer", a, lessor.Applied{
		Created: []string{"new"}, Changed: []string{"other"},
		Unchanged: []string{"same"}, Removed: []string{"old"},
	})
	if len(removed) != 1 || removed[0].ID != "old" {
		t.Errorf("removes %v", removed)
	}
	same(t, "ids", p.IDs(), []string{"new", "same", "other"})

	for want, taken := range map[string]*Definition{
		"definition new belongs to module cars":                        stored("new", "cars", 5),
		"definition new belongs to no module: it was stored by itself": stored("new", "", 5),
	} {
		_, _, err := p.Against(map[string]*Definition{"new": taken})
		if lessor.CodeOf(err) != lessor.CodeConflict || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	foreign := stored("new", "books", 5)
	foreign.Tenant = tenantID(5)
	if _, _, err := p.Against(map[string]*Definition{"new": foreign}); lessor.CodeOf(err) != lessor.CodeConflict ||
		strings.Contains(err.Error(), foreign.Tenant.String()) {
		t.Errorf("another tenant's: %v", err)
	}
}

func TestDryRunShowsChangedDefinitionsWithTheirDefaults(t *testing.T) {
	p, err := plan(t, strings.Replace(books(entry("new"), entry("other")), `"prune"`, `"dryRun": true, "prune"`, 1))
	if err != nil {
		t.Fatal(err)
	}
	stored := define(t, entry("other"))
	stored.Module, stored.MaxAttempts, stored.Paused, stored.CreatedAt = "books", 4, true, 77
	a, _, err := p.Against(map[string]*Definition{"other": stored})
	if err != nil || len(a.Definitions) != 1 {
		t.Fatalf("got %+v, %v, want one definition", a, err)
	}
	want := ShowDefinition(stored)
	want.MaxAttempts, want.Version = defaultAttempts, new("1")
	same(t, "definition", a.Definitions[0], want)
}

func TestManifestIsRefusedWhole(t *testing.T) {
	foreign := strings.Replace(entry("abc"), `{`, `{"tenantId": "03000000-0000-0000-0000-000000000005", `, 1)
	many := strings.Split(strings.Repeat("{}|", 1000)+"{}", "|")
	for body, want := range map[string]string{
		`{"tenantId": "` + tenantName + `", "jobs": []}`: "moduleId: is required",
		`{"moduleId": "m", "jobs": []}`:                  "tenantId: is required",
		`{"moduleId": "m", "tenantId": "x"}`:             "jobs: is required",
		`{"moduleId": "", "tenantId": "` + tenantName +
			`", "jobs": []}`: "moduleId: must be 1 to 120 characters long, not 0",
		books(entry("abc"), entry("abc")): "jobs[1].jobId: is the same as that of jobs[0]",
		books(entry("abc"), entry("ab")):  "jobs[1].jobId: must be 3 to 120 characters long, not 2",
		books(foreign): "jobs[0].tenantId: must be the manifest's (" +
			tenantName + ")",
		books(many...): "jobs: must be at most 1000, not 1001",
	} {
		_, err := plan(t, body)
		if got := firstField(err); got != want {
			t.Errorf("%.80s… is refused with %q, want %q", body, got, want)
		}
	}
	other := tenantID(5)
	_, err := Manifest(manifest(t, books()), &other, nil)
	if lessor.CodeOf(err) != lessor.CodeForbidden {
		t.Errorf("another tenant's manifest: %v", err)
	}
}

func TestHandlerBounds(t *testing.T) {
	for want, c := range map[string]struct {
		id     string
		schema string
	}{
		"": {"abc", "{}"}, "schema: is required": {"abc", ""},
		"handlerId: must be 3 to 120 characters long, not 2": {"ab", "{}"},
		"schema: must be at most 65536 bytes, not 65537":     {"abc", strings.Repeat(" ", 65537)},
	} {
		if got := firstField(CheckHandler(c.id, []byte(c.schema))); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestPolicyBounds(t *testing.T) {
	fresh := Policy{Tenant: tenantID(4), Weight: 1}
	p, err := fresh.Change(&lessor.TenantAsk{}, 25)
	same(t, "defaults", fmt.Sprint(p, err), fmt.Sprint(fresh, nil))
	for want, ask := range map[string]lessor.TenantAsk{
		"weight: must be 1 to 10000, not 0":           {Weight: lessor.SetTo(int64(0))},
		"weight: must be 1 to 10000, not 10001":       {Weight: lessor.SetTo(int64(10_001))},
		"maxConcurrency: must be 1 to 1000000, not 0": {MaxConcurrency: lessor.SetTo(int64(0))},
	} {
		_, err := fresh.Change(&ask, 25)
		same(t, "refusal", firstField(err), want)
	}
	fresh.Class = strings.Repeat("x", 81)
	if _, err := fresh.Change(&lessor.TenantAsk{}, 25); err == nil {
		t.Error("a class of 81 characters is accepted")
	}
}

func TestChangeOfAPolicyKeepsWhatItLeavesOut(t *testing.T) {
	p := Policy{Tenant: tenantID(4), Class: "bulk", Weight: 1}
	for _, c := range []struct {
		name string
		ask  lessor.TenantAsk
		want Policy
	}{
		{"all", lessor.TenantAsk{
			Weight: lessor.SetTo(int64(10_000)), MaxConcurrency: lessor.SetTo(int64(1)), Paused: lessor.SetTo(true),
		}, Policy{Weight: 10_000, Cap: 1, Paused: true}},
		{"nothing", lessor.TenantAsk{}, Policy{Weight: 10_000, Cap: 1, Paused: true}},
		{"the weight", lessor.TenantAsk{Weight: lessor.SetTo(int64(2))}, Policy{Weight: 2, Cap: 1, Paused: true}},
		{
			"no cap",
			lessor.TenantAsk{MaxConcurrency: lessor.Change[int64]{Reset: true}},
			Policy{Weight: 2, Paused: true},
		},
		{"the default as it was read", lessor.TenantAsk{
			MaxConcurrency: lessor.SetTo(int64(25)), MaxConcurrencyDefault: new(true),
		}, Policy{Weight: 2, Paused: true}},
		{"the default with another cap", lessor.TenantAsk{
			MaxConcurrency: lessor.SetTo(int64(26)), MaxConcurrencyDefault: new(true),
		}, Policy{Weight: 2, Cap: 26, Paused: true}},
		{"the default's number", lessor.TenantAsk{
			MaxConcurrency: lessor.SetTo(int64(25)), MaxConcurrencyDefault: new(false),
		}, Policy{Weight: 2, Cap: 25, Paused: true}},
		{"the default as somebody else read it", lessor.TenantAsk{
			MaxConcurrency: lessor.SetTo(int64(25)), MaxConcurrencyDefault: new(true),
		}, Policy{Weight: 2, Paused: true}},
		{"no pause", lessor.TenantAsk{Paused: lessor.Change[bool]{Reset: true}}, Policy{Weight: 2}},
		{"no weight", lessor.TenantAsk{Weight: lessor.Change[int64]{Reset: true}}, Policy{Weight: 1}},
	} {
		c.want.Tenant, c.want.Class = p.Tenant, p.Class
		var err error
		p, err = p.Change(&c.ask, 25)
		same(t, c.name, fmt.Sprint(p, err), fmt.Sprint(c.want, nil))
	}
}
