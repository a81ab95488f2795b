package main

import (
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// TestWorlds simulates an hour of 2,000 worlds. A failure prints the command that replays the smallest world with it.
// Only the first 500 count the statements that they reach, which takes a quarter more time.
func TestWorlds(t *testing.T) {
	reached := t.TempDir()
	t.Setenv("GOCOVERDIR", reached)
	live(t, "1", "500", "-cover", "-coverpkg=../internal/rules,.")
	checkReached(t, reached)
	live(t, "501", "1500")
}

// live builds the simulator with some flags, and runs worlds in the time that tests of other packages leave.
func live(t *testing.T, first, seeds string, flags ...string) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "sim")
	build := exec.CommandContext(t.Context(), "go", append(append([]string{"build", "-o", bin}, flags...), ".")...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the simulator: %v\n%s", err, out)
	}
	run := exec.CommandContext(t.Context(), "nice", "-n", "19", bin, "-first", first, "-seeds", seeds)
	out, err := run.CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Fatal(err)
	}
}

// The worlds must reach this percentage of the statements of package rules. The rest is called only by other packages,
// or runs only with a program of another release or a broken one.
const leastReached = 95

// checkReached checks that the traffic reaches nearly all rules, also those that were added since.
func checkReached(t *testing.T, dir string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "tool", "covdata", "percent", "-i="+dir).CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Fatal(err)
	}
	part := regexp.MustCompile(`internal/rules\s+coverage: ([0-9.]+)%`).FindSubmatch(out)
	if part == nil {
		t.Fatal("there is no percentage of the rules")
	}
	if percent, err := strconv.ParseFloat(string(part[1]), 64); err != nil || percent < leastReached {
		t.Errorf("the worlds reach %.1f%% of the rules (%v), want %d%%: add traffic for what is new", percent, err,
			leastReached)
	}
}

// TestSameSeedSameTrace runs each world twice.
func TestSameSeedSameTrace(t *testing.T) {
	for seed := uint64(1); seed <= 6; seed++ {
		p := PlanOf(seed, 10*time.Minute, seed%2 == 0)
		p.Faults = AllFaults
		first, trace, _ := Run(p, nil)
		second, again, _ := Run(p, io.Discard)
		if trace != again {
			t.Errorf("seed %d: %+v with trace %x, then %+v with trace %x", seed, first, trace, second, again)
		}
	}
}
