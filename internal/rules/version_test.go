package rules

import (
	"testing"

	"lessor"
)

func TestChangeNeedsTheVersionThatItsCallerNames(t *testing.T) {
	for _, c := range []struct {
		wanted, current string
		ok              bool
	}{
		{"", "a1", true},
		{"", "", true},
		{`"a1"`, "a1", true},
		{`W/"a1"`, "a1", true},
		{"a1", "a1", true},
		{`"b2", "a1"`, "a1", true},
		{"*", "a1", true},
		{"*", "", false},
		{`"b2"`, "a1", false},
		{`"a1"`, "", false},
		{`""`, "a1", false},
		{`""`, "", false},
	} {
		err := Match(c.wanted, c.current)
		if c.ok != (err == nil) || err != nil && lessor.CodeOf(err) != lessor.CodePreconditionFailed {
			t.Errorf("If-Match %s of %q: %v", c.wanted, c.current, err)
		}
	}
}

func TestVersionChangesWithSettingsAlone(t *testing.T) {
	tenant := lessor.Tenant{Weight: 2, Leases: 1, Units: 2, Queued: 3}
	version := VersionOf(tenant)
	tenant.Leases, tenant.Units, tenant.Queued = 7, 8, 9
	if VersionOf(tenant) != version {
		t.Error("a tenant's use changes its version")
	}
	tenant.Paused = true
	if VersionOf(tenant) == version {
		t.Error("a tenant's pause does not change its version")
	}
	class := lessor.Class{Weight: 2, Queued: 3}
	version = VersionOf(class)
	class.Queued, class.Leases = 9, 9
	if VersionOf(class) != version {
		t.Error("a class's use changes its version")
	}
	if class.Weight = 3; VersionOf(class) == version {
		t.Error("a class's weight does not change its version")
	}
}
