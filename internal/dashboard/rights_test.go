package dashboard

import (
	"testing"

	"lessor"
	"lessor/internal/scheduler"
)

// TestWorkersShareNoPart: the token of a worker sees only the leases that were granted to it.
func TestWorkersShareNoPart(t *testing.T) {
	of := func(role string, id byte) string {
		held := &scheduler.Token{ID: lessor.TokenID{UUID: lessor.UUID{id}}, Role: role, Tenant: &lessor.TenantID{}}
		return (&visit{held: held}).rights()
	}
	if of("worker", 1) == of("worker", 2) {
		t.Error("two workers' tokens share what is shown")
	}
	if of("viewer", 1) != of("viewer", 2) {
		t.Error("two viewers of a tenant do not")
	}
}
