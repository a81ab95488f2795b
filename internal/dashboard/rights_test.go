package dashboard

import (
	"testing"

	"lessor"
	"lessor/internal/scheduler"
)

// TestWorkersShareNoPart: a worker's token is shown only the leases that were taken with it.
func TestWorkersShareNoPart(t *testing.T) {
	of := func(role string, id byte) string {
		return (&visit{held: &scheduler.Token{ID: lessor.TokenID{UUID: lessor.UUID{id}}, Role: role, Tenant: &lessor.TenantID{}}}).rights()
	}
	if of("worker", 1) == of("worker", 2) {
		t.Error("two workers' tokens share what is shown")
	}
	if of("viewer", 1) != of("viewer", 2) {
		t.Error("two viewers of a tenant do not")
	}
}
