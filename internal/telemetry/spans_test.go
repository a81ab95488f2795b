package telemetry

import (
	"testing"

	"lessor"
)

// TestGrantsOfOneJobHaveSpansOfTheirOwn: the lease ids of one job may have equal second halves.
func TestGrantsOfOneJobHaveSpansOfTheirOwn(t *testing.T) {
	first := lessor.UUID{0x01, 0x99, 6: 0x70, 8: 0x80, 15: 7}
	second := first
	second[5]++ // a moment later
	if a, b := spanOf(first), spanOf(second); a == b || !a.IsValid() || !b.IsValid() {
		t.Errorf("spans %s and %s, want two different valid ids", a, b)
	}
}
