package worker_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"lessor/worker"
)

func TestElapsedCountsFromTheLatestBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hb worker.Heartbeat
		if got := hb.Elapsed(); got != 0 {
			t.Fatalf("a new heartbeat is %s old", got)
		}
		time.Sleep(90 * time.Second)
		if got := hb.Elapsed(); got != 90*time.Second {
			t.Errorf("without a beat %s elapsed since the first use, want 90s", got)
		}
		hb.Beat()
		time.Sleep(2 * time.Second)
		if got := hb.Elapsed(); got != 2*time.Second {
			t.Errorf("%s elapsed since the beat, want 2s", got)
		}
	})
}

func TestObserveIsAFirstUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hb worker.Heartbeat
		hb.Observe(func() {})
		time.Sleep(time.Second)
		if got := hb.Elapsed(); got != time.Second {
			t.Errorf("%s elapsed, want 1s", got)
		}
	})
}

func TestObserversAreCalledInTheOrderAdded(t *testing.T) {
	var hb worker.Heartbeat
	var got []string
	note := func(name string) func() { return func() { got = append(got, name) } }
	hb.Observe(note("a"))
	removeB := hb.Observe(note("b"))
	hb.Observe(note("c"))
	hb.Beat()
	removeB()
	removeB()
	hb.Observe(note("d"))
	hb.Beat()
	if diff := cmp.Diff([]string{"a", "b", "c", "a", "c", "d"}, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestObserverThatPanicsStopsNothing(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)

	var hb worker.Heartbeat
	var after int
	hb.Observe(func() { panic("out of order") })
	hb.Observe(func() { after++ })
	hb.Beat()
	hb.Beat()
	if after != 2 {
		t.Errorf("the observer behind was called %d times, want 2", after)
	}
	if got := log.String(); strings.Count(got, "level=ERROR") != 2 || !strings.Contains(got, "out of order") {
		t.Errorf("logged %q", got)
	}
}

func TestObserversMayUseTheHeartbeat(t *testing.T) {
	var hb worker.Heartbeat
	var remove func()
	var late, other int
	remove = hb.Observe(func() {
		remove()
		hb.Elapsed()
		hb.Observe(func() { late++ })
	})
	hb.Observe(func() { other++ })
	hb.Beat()
	if late != 0 || other != 1 {
		t.Errorf("during the beat the one that was added was called %d times, the one behind %d; want 0 and 1",
			late, other)
	}
	hb.Beat()
	if late != 1 || other != 2 {
		t.Errorf("after the next the one that was added was called %d times, the one behind %d; want 1 and 2",
			late, other)
	}
}

func TestConcurrentBeatsAreAllObserved(t *testing.T) {
	var hb worker.Heartbeat
	var mu sync.Mutex
	beats := 0
	hb.Observe(func() { mu.Lock(); beats++; mu.Unlock() })
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				hb.Beat()
				hb.Observe(func() {})()
			}
		})
	}
	all.Wait()
	if beats != 8000 {
		t.Errorf("the observer got %d beats, want 8000", beats)
	}
}
