package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain lets the benchmarks start this program again as a server.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	if err := runChild(); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

// TestBenchmarksRun runs each benchmark with a few hundred jobs: they work, print their table, judge nothing and leave
// nothing behind. No test depends on the figures.
func TestBenchmarksRun(t *testing.T) {
	for _, m := range benchmarks {
		t.Run(m.name, func(t *testing.T) {
			var out bytes.Buffer
			b := &bench{out: &out, progress: t.Output(), folder: t.TempDir(), size: smoke, peers: true}
			if err := b.runAll(t.Context(), m.name); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), "# "+m.name) || !strings.Contains(out.String(), "(not judged)") {
				t.Errorf("the output has no table of %s with its bound:\n%s", m.name, out.String())
			}
			left, err := os.ReadDir(b.folder)
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestUnknownBenchmarkIsRefused(t *testing.T) {
	b := &bench{out: t.Output(), progress: t.Output(), folder: t.TempDir(), size: smoke}
	if err := b.runAll(t.Context(), "nosuch"); err == nil {
		t.Error("a benchmark that does not exist was run")
	}
}

func TestMissedBoundIsRemembered(t *testing.T) {
	tests := []struct {
		name   string
		size   size
		judge  func(*bench)
		missed bool
	}{
		{"at least, reached", fully, func(b *bench) { b.atLeast("x", 5, 5) }, false},
		{"at least, missed", fully, func(b *bench) { b.atLeast("x", 4.9, 5) }, true},
		{"at most, kept", quickly, func(b *bench) { b.atMost("x", 1.6, 1.6) }, false},
		{"at most, missed", quickly, func(b *bench) { b.atMost("x", 1.7, 1.6) }, true},
		{"missed and passed after", fully, func(b *bench) { b.atMost("x", 2, 1); b.atMost("x", 1, 1) }, true},
		{"smoke", smoke, func(b *bench) { b.atLeast("x", 1, 5) }, false},
	}
	for _, tt := range tests {
		b := &bench{out: t.Output(), size: tt.size}
		if tt.judge(b); b.missed != tt.missed {
			t.Errorf("%s: missed is %t, want %t", tt.name, b.missed, tt.missed)
		}
	}
}

func TestMedian(t *testing.T) {
	second := func(n int) cost { return cost{ops: n, wall: time.Second} }
	tests := []struct {
		rounds []cost
		want   float64
	}{
		{[]cost{second(7)}, 7},
		{[]cost{second(9), second(1), second(5)}, 5},
		{[]cost{second(4), second(2)}, 2},
	}
	for _, tt := range tests {
		if got := median(tt.rounds, cost.rate); got != tt.want {
			t.Errorf("median of %v is %v, want %v", tt.rounds, got, tt.want)
		}
	}
}

func TestConcurrentlyDoesEachItemOnce(t *testing.T) {
	done := make(chan int, 100)
	err := concurrently(t.Context(), 8, 100, func(_ context.Context, _, item int) error {
		done <- item
		return nil
	})
	close(done)
	seen := map[int]bool{}
	for item := range done {
		seen[item] = true
	}
	if err != nil || len(seen) != 100 {
		t.Errorf("%d of 100 items were done, error %v", len(seen), err)
	}
}

func TestConcurrentlyEndsWithTheFirstError(t *testing.T) {
	bad := errors.New("bad")
	calls := 0
	err := concurrently(t.Context(), 1, 100, func(context.Context, int, int) error {
		calls++
		return bad
	})
	if !errors.Is(err, bad) || calls != 1 {
		t.Errorf("%d calls were made, error %v; want 1 call and its error", calls, err)
	}
}

func TestPeerGoalsAreJudged(t *testing.T) {
	rate := func(n int) []cost { return []cost{{ops: n, wall: time.Second}} }
	all := []*peerFigures{
		{peer: peer{name: "Lessor, PostgreSQL"}, life: rate(300)},
		{peer: peer{name: riverPeer}, life: rate(100)},
		{peer: peer{name: "Lessor, SQLite"}, life: rate(900), p50: 3},
		{peer: peer{name: "River, SQLite"}, life: rate(100)},
		{peer: peer{name: "beanstalkd -f 0"}, p50: 1},
	}
	var text bytes.Buffer
	writePeerGoals(&text, all)
	for _, want := range []string{
		"| River, PostgreSQL | 3.00 | ≥ 2.0 | reached |",
		"| River, SQLite | 9.00 | ≥ 10.0 | **not reached** |",
		"| beanstalkd -f 0 | 3.00 | ≤ 2.0 | **not reached** |",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the goals lack %q:\n%s", want, text.String())
		}
	}
	if n := strings.Count(text.String(), "reached"); n != 3 {
		t.Errorf("%d goals are judged, want the 3 of which there are figures:\n%s", n, text.String())
	}
}
