package token

import (
	"slices"
	"strings"
	"testing"
)

// The table of SPEC 7, "Access", written the other way round: per role, what it may.
func TestRolesHaveTheScopesOfTheSpecification(t *testing.T) {
	want := map[Role]string{
		Viewer:    "public describe observe read read_job read_jobs read_leases read_figures read_handlers",
		Submitter: "public describe read_job read_jobs submit",
		Worker:    "public describe read_job read_leases lease read_figures read_handlers",
		Operator: "public describe observe read read_job read_jobs submit read_leases lease revoke read_figures " +
			"set_capacity drain schedule set_tenant read_handlers set_handler",
		Admin: "public describe observe read read_job read_jobs submit read_leases lease revoke read_figures " +
			"set_capacity drain schedule set_tenant read_handlers set_handler read_audit administer",
	}
	for _, r := range Roles() {
		for s := range scopes {
			has := strings.Contains(" "+want[r]+" ", " "+string(s)+" ")
			if r.Allows(s) != has {
				t.Errorf("%s allows %s: %v, want %v", r, s, r.Allows(s), has)
			}
		}
	}
}

func TestUnknownScopesAndRolesAreAllowedNothing(t *testing.T) {
	for _, r := range append(Roles(), "", "root") {
		if r.Allows("") || r.Allows("no_such_scope") {
			t.Errorf("%q is allowed a scope that does not exist", r)
		}
	}
	if Role("").Allows(Read) || !Role("").Allows(Public) {
		t.Error("somebody without a role may do the public and nothing else")
	}
}

func TestScopesThatConcernAllTenantsRefuseTenants(t *testing.T) {
	for s := range scopes {
		want := slices.Contains([]Scope{
			Observe, ReadFigures, SetCapacity, Drain, SetTenant, ReadHandlers, SetHandler,
			ReadAudit, Administer,
		}, s)
		if s.RefusesTenants() != want {
			t.Errorf("%s refuses tenants: %v, want %v", s, s.RefusesTenants(), want)
		}
		want = slices.Contains([]Scope{Revoke, SetCapacity, Drain, ReadAudit, Administer}, s)
		if s.NeedsToken() != want {
			t.Errorf("%s needs a token: %v, want %v", s, s.NeedsToken(), want)
		}
	}
}
