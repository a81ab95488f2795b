package main

import (
	"io"
	"os"
	"strconv"
	"testing"
	"time"
)

// TestWorlds lives an hour of the worlds of LESSOR_SIM_SEEDS (400) seeds. A failure prints the command that lives the
// smallest world with it again.
func TestWorlds(t *testing.T) {
	seeds := uint64(400)
	if text, set := os.LookupEnv("LESSOR_SIM_SEEDS"); set {
		var err error
		if seeds, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("LESSOR_SIM_SEEDS=%s: %v", text, err)
		}
	}
	s := &soak{out: t.Output(), next: 1, last: seeds, length: time.Hour, began: time.Now()}
	if err := s.run(); err != nil {
		t.Error(err)
	}
}

// TestSameSeedSameTrace lives worlds twice.
func TestSameSeedSameTrace(t *testing.T) {
	for seed := uint64(1); seed <= 6; seed++ {
		p := PlanOf(seed, 10*time.Minute)
		p.Faults = AllFaults
		first, trace, _ := Run(p, nil)
		second, again, _ := Run(p, io.Discard)
		if trace != again {
			t.Errorf("seed %d: %+v with trace %x, then %+v with trace %x", seed, first, trace, second, again)
		}
	}
}
