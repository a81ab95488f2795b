package scheduler

import (
	"context"
	"errors"
	"testing"

	"lessor"
)

// TestLineHasAShareForEachTenant fills one tenant's share of the line of calls: its next call is refused, and
// others get in.
func TestLineHasAShareForEachTenant(t *testing.T) {
	full, other := lessor.TenantID{UUID: lessor.UUID{1}}, lessor.TenantID{UUID: lessor.UUID{2}}
	s := New(viewer{}, Config{})
	for s.calls.Put(full.UUID, &readCall{call: s.newCall()}) == nil {
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, c := range []struct {
		name   string
		tenant *lessor.TenantID
		want   lessor.Code
	}{
		{"the tenant", &full, lessor.CodeRateLimited},
		{"another tenant", &other, ""},
		{"a caller without a tenant", nil, ""},
	} {
		err := s.read(gone, Caller{Tenant: c.tenant}, func(l *loop) {})
		if c.want != "" && lessor.CodeOf(err) != c.want || c.want == "" && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want %q, or to wait", c.name, err, c.want)
		}
	}
}
