package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// The worlds of TestWorlds must reach this percentage of the statements of package rules. The rest is called only by
// other packages, or runs only with a program of another release or a broken one.
const leastReached = 95

// TestWorlds simulates an hour of the worlds of LESSOR_SIM_SEEDS (2000) seeds. A failure prints the command that
// replays the smallest world with it. The traffic must reach nearly all rules, also those that were added since.
func TestWorlds(t *testing.T) {
	seeds, set := os.LookupEnv("LESSOR_SIM_SEEDS")
	if !set {
		seeds = "2000"
	}
	bin, reached := filepath.Join(t.TempDir(), "sim"), t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-cover", "-coverpkg=../internal/rules,.", "-o", bin, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the simulator: %v\n%s", err, out)
	}
	// other packages, whose tests go by time, come first
	live := exec.CommandContext(t.Context(), "nice", "-n", "10", bin, "-seeds", seeds)
	live.Env = append(os.Environ(), "GOCOVERDIR="+reached)
	out, err := live.CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Fatal(err)
	}
	tool := exec.CommandContext(t.Context(), "go", "tool", "covdata", "percent", "-i="+reached)
	if out, err = tool.CombinedOutput(); err != nil {
		t.Fatalf("read what was reached: %v\n%s", err, out)
	}
	part := regexp.MustCompile(`internal/rules\s+coverage: ([0-9.]+)%`).FindSubmatch(out)
	if part == nil {
		t.Fatalf("no percentage in %s", out)
	}
	percent, err := strconv.ParseFloat(string(part[1]), 64)
	if t.Logf("%s", out); err != nil || percent < leastReached && !set {
		t.Errorf("the worlds reach %.1f%% of the rules (%v), want %d%%: add traffic for what is new", percent, err,
			leastReached)
	}
}

// TestSameSeedSameTrace runs each world twice.
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
