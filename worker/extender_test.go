package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"lessor/worker"
)

// counted is a message that only counts its extensions. Its other methods must not be called.
type counted struct {
	worker.Message
	calls  atomic.Int64
	extend func(n int64) error // nil = success
}

func (*counted) ID() string { return "abc-123" }

func (m *counted) Extend(context.Context, time.Duration) error {
	n := m.calls.Add(1)
	if m.extend != nil {
		return m.extend(n)
	}
	return nil
}

// lines collects what is logged as "LEVEL text".
type lines struct {
	slog.Handler
	mu  sync.Mutex
	all []string
}

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r.Level.String()+" "+r.Message)
	return nil
}

func (*lines) Enabled(context.Context, slog.Level) bool { return true }

func attach(t *testing.T, x *worker.LeaseExtender, m worker.Extendable, hb *worker.Heartbeat) (detach func()) {
	t.Helper()
	detach, err := x.Attach(t.Context(), m, hb)
	if err != nil {
		t.Fatal(err)
	}
	return detach
}

func (m *counted) want(t *testing.T, want int64, when string) {
	t.Helper()
	if got := m.calls.Load(); got != want {
		t.Errorf("%d extensions %s, want %d", got, when, want)
	}
}

func TestLeaseExtenderExtendsOnBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hb worker.Heartbeat
		m := &counted{}
		x := worker.NewLeaseExtender(worker.LeaseExtenderConfig{Interval: worker.EveryBeat})
		detach := attach(t, x, m, &hb)
		hb.Beat()
		hb.Beat()
		hb.Beat()
		detach()
		m.want(t, 3, "after three beats")
		hb.Beat()
		m.want(t, 3, "after a beat behind detach")
		if ok, failed := x.Counts(); ok != 3 || failed != 0 {
			t.Errorf("counted %d extensions and %d failures, want 3 and 0", ok, failed)
		}
	})
}

func TestLeaseExtenderRateLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hb worker.Heartbeat
		m := &counted{}
		defer attach(t, worker.NewLeaseExtender(worker.LeaseExtenderConfig{Interval: time.Second}), m, &hb)()
		hb.Beat()
		hb.Beat()
		hb.Beat()
		m.want(t, 1, "after three beats at once")
		time.Sleep(time.Second - time.Nanosecond)
		hb.Beat()
		m.want(t, 1, "just before the interval is over")
		time.Sleep(time.Nanosecond)
		hb.Beat()
		m.want(t, 2, "when the interval is over")
	})
}

func TestLeaseExtenderDefaultsAreAMinuteAndFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hb worker.Heartbeat
		m := &counted{}
		log := &lines{}
		defer attach(t, worker.NewLeaseExtender(worker.LeaseExtenderConfig{Log: slog.New(log)}), m, &hb)()
		for range 121 { // beats at 0, 1, … 120 s
			hb.Beat()
			time.Sleep(time.Second)
		}
		m.want(t, 3, "in two minutes of beats")
		if want := "DEBUG Extended visibility for message abc-123 by 300 seconds"; log.all[0] != want {
			t.Errorf("logged %q, want %q", log.all[0], want)
		}
	})
}

func TestLeaseExtenderDisabled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hb worker.Heartbeat
		m := &counted{}
		x := worker.NewLeaseExtender(worker.LeaseExtenderConfig{Interval: worker.EveryBeat, Disabled: true})
		defer attach(t, x, m, &hb)()
		defer attach(t, x, m, &hb)()
		hb.Beat()
		m.want(t, 0, "while disabled")
	})
}

func TestZeroLeaseExtenderIsRefused(t *testing.T) {
	var x worker.LeaseExtender
	var hb worker.Heartbeat
	m := &counted{}
	if _, err := x.Attach(t.Context(), m, &hb); err == nil {
		t.Error("an extender that extends by nothing was attached")
	}
	hb.Beat()
	if n := m.calls.Load(); n != 0 {
		t.Errorf("%d extensions by nothing", n)
	}
}

func TestHeartbeatCallbackChaining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hb worker.Heartbeat
		var calls []string
		hb.Observe(func() { calls = append(calls, "original") })
		m := &counted{extend: func(int64) error { calls = append(calls, "extend"); return nil }}
		detach := attach(t, worker.NewLeaseExtender(worker.LeaseExtenderConfig{Interval: worker.EveryBeat}), m, &hb)
		hb.Beat()
		detach()
		hb.Beat()
		if diff := cmp.Diff([]string{"original", "extend", "original"}, calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestStuckWorkerLeaseExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := worker.NewMemory(worker.MemoryConfig{})
		m := sendAndReceive(t, box, time.Second)
		var hb worker.Heartbeat
		x := worker.NewLeaseExtender(worker.LeaseExtenderConfig{Interval: 100 * time.Millisecond})
		detach := attach(t, x, m, &hb)
		time.Sleep(1500 * time.Millisecond) // hung: no beats
		detach()
		if ok, failed := x.Counts(); ok != 0 || failed != 0 {
			t.Errorf("%d extensions and %d failures without a beat", ok, failed)
		}
		if again := receive(t, box, 1, time.Minute, 0); len(again) != 1 || again[0].ID() != m.ID() {
			t.Errorf("received %v, want the message of the worker that hangs", again)
		}
	})
}

func TestBeatingWorkerKeepsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := worker.NewMemory(worker.MemoryConfig{})
		m := sendAndReceive(t, box, 2*time.Second)
		var hb worker.Heartbeat
		x := worker.NewLeaseExtender(worker.LeaseExtenderConfig{Interval: time.Second, Extension: 2 * time.Second})
		defer attach(t, x, m, &hb)()
		for range 3600 {
			time.Sleep(time.Second)
			hb.Beat()
			if got := receive(t, box, 1, time.Second, 0); len(got) != 0 {
				t.Fatal("the message of a worker that beats went to another")
			}
		}
		if err := m.Acknowledge(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestFailedExtensionIsTriedAtTheNextBeatAndLoggedOnceAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hb worker.Heartbeat
		log := &lines{}
		m := &counted{extend: func(n int64) error {
			if n <= 4 {
				return fmt.Errorf("ask the server: %w", worker.ErrReceiptExpired)
			}
			return nil
		}}
		x := worker.NewLeaseExtender(worker.LeaseExtenderConfig{Interval: time.Minute, Log: slog.New(log)})
		defer attach(t, x, m, &hb)()
		x.Expect(time.Hour) // tried at every beat, logged no more often
		hb.Beat()
		hb.Beat()
		time.Sleep(59 * time.Second)
		hb.Beat()
		x.Expect(0)
		time.Sleep(time.Second)
		hb.Beat()
		m.want(t, 4, "while they fail")
		hb.Beat()
		hb.Beat()
		m.want(t, 5, "after one succeeded")
		want := []string{
			"WARN Lease extension failed for message abc-123: receipt handle expired",
			"WARN Lease extension failed for message abc-123: receipt handle expired",
			"DEBUG Extended visibility for message abc-123 by 300 seconds",
		}
		if diff := cmp.Diff(want, log.all); diff != "" {
			t.Errorf("logged (-want +got):\n%s", diff)
		}
		if ok, failed := x.Counts(); ok != 1 || failed != 4 {
			t.Errorf("counted %d extensions and %d failures, want 1 and 4", ok, failed)
		}
	})
}

func TestAtMostOneExtensionAnIntervalUnderBeatsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hb worker.Heartbeat
		m := &counted{extend: func(int64) error { time.Sleep(10 * time.Millisecond); return nil }}
		defer attach(t, worker.NewLeaseExtender(worker.LeaseExtenderConfig{Interval: time.Second}), m, &hb)()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for range 1000 { // ten seconds of beats
					hb.Beat()
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		all.Wait()
		if got := m.calls.Load(); got < 9 || got > 11 {
			t.Errorf("%d extensions in ten seconds of beats, want one a second", got)
		}
	})
}

func TestIntervalCountsFromTheExtensionNotFromTheBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hb worker.Heartbeat
		var slow atomic.Bool
		slow.Store(true)
		hb.Observe(func() {
			if slow.Swap(false) {
				time.Sleep(59 * time.Second)
			}
		})
		m := &counted{}
		defer attach(t, worker.NewLeaseExtender(worker.LeaseExtenderConfig{}), m, &hb)()
		hb.Beat() // extends 59 s after it began
		time.Sleep(time.Second)
		hb.Beat()
		m.want(t, 1, "one second after the first")
	})
}

func TestAttachTwiceIsRefusedUntilDetached(t *testing.T) {
	var hb worker.Heartbeat
	x := worker.NewLeaseExtender(worker.LeaseExtenderConfig{Interval: worker.EveryBeat})
	first, second := &counted{}, &counted{}
	func() {
		defer func() { _ = recover() }()
		defer attach(t, x, first, &hb)()
		if _, err := x.Attach(t.Context(), second, &hb); !errors.Is(err, worker.ErrAttached) {
			t.Errorf("attached twice: %v", err)
		}
		panic("the work failed")
	}()
	detach := attach(t, x, second, &hb)
	hb.Beat()
	detach()
	detach()
	first.want(t, 0, "of the first, which was detached by a panic")
	second.want(t, 1, "of the second")
}

func TestExtensionThatLosesARaceWithTheEndIsNoFailure(t *testing.T) {
	var hb worker.Heartbeat
	log := &lines{}
	var detach func()
	m := &counted{extend: func(int64) error {
		detach() // the work was finished while the extension was on its way
		return worker.ErrReceiptExpired
	}}
	x := worker.NewLeaseExtender(worker.LeaseExtenderConfig{Log: slog.New(log)})
	detach = attach(t, x, m, &hb)
	hb.Beat()
	if _, failed := x.Counts(); failed != 0 || len(log.all) != 0 {
		t.Errorf("counted %d failures and logged %q", failed, log.all)
	}
}

func TestExtensionIsBoundedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hb worker.Heartbeat
		began := time.Now()
		defer attach(t, worker.NewLeaseExtender(worker.LeaseExtenderConfig{}), deaf{}, &hb)()
		hb.Beat()
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("a beat waited %s for a server that does not answer", took)
		}
	})
}

// deaf is a message whose server does not answer.
type deaf struct{ worker.Message }

func (deaf) ID() string { return "deaf" }

func (deaf) Extend(ctx context.Context, _ time.Duration) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestExpectedSilenceShortensTheInterval(t *testing.T) {
	for _, c := range []struct {
		silence, want time.Duration // interval
		bridged       bool
	}{
		{0, time.Minute, true},
		{160 * time.Second, time.Minute, true},
		{180 * time.Second, 30 * time.Second, true},
		{200 * time.Second, 0, true},
		{201 * time.Second, 0, false},
		{time.Hour, 0, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var hb worker.Heartbeat
			m := &counted{}
			x := worker.NewLeaseExtender(worker.LeaseExtenderConfig{})
			defer attach(t, x, m, &hb)()
			hb.Beat()
			if got := x.Expect(c.silence); got != c.bridged {
				t.Errorf("a silence of %s is bridged: %t", c.silence, got)
			}
			if c.want > 0 {
				time.Sleep(c.want - time.Nanosecond)
				hb.Beat()
				m.want(t, 1, "just before the interval for a silence of "+c.silence.String())
				time.Sleep(time.Nanosecond)
			}
			hb.Beat()
			m.want(t, 2, "after the interval for a silence of "+c.silence.String())
		})
	}
}

func BenchmarkBeat(b *testing.B) {
	hb, detach := attached(b)
	defer detach()
	b.ReportAllocs()
	for b.Loop() {
		hb.Beat()
	}
}

func BenchmarkBeatParallel(b *testing.B) {
	hb, detach := attached(b)
	defer detach()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			hb.Beat()
		}
	})
}

// attached returns a heartbeat whose next extension is an hour away.
func attached(b *testing.B) (*worker.Heartbeat, func()) {
	hb := &worker.Heartbeat{}
	x := worker.NewLeaseExtender(worker.LeaseExtenderConfig{Interval: time.Hour})
	detach, err := x.Attach(b.Context(), &counted{}, hb)
	if err != nil {
		b.Fatal(err)
	}
	hb.Beat()
	return hb, detach
}

func TestBeatAllocatesNothingWhenNoExtensionIsDue(t *testing.T) {
	var hb worker.Heartbeat
	defer attach(t, worker.NewLeaseExtender(worker.LeaseExtenderConfig{}), &counted{}, &hb)()
	hb.Beat()
	if n := testing.AllocsPerRun(1000, hb.Beat); n != 0 {
		t.Errorf("a beat allocates %v times", n)
	}
}

// lock is a lease that is not a message.
type lock struct{ extended int }

func (*lock) ID() string { return "lock" }

func (l *lock) Extend(context.Context, time.Duration) error {
	l.extended++
	return errors.New("refused")
}

func TestExtenderOfAStoppedWorkerIsSilent(t *testing.T) {
	var log lines
	var hb worker.Heartbeat
	l := &lock{}
	x := worker.NewLeaseExtender(worker.LeaseExtenderConfig{Interval: worker.EveryBeat, Log: slog.New(&log)})
	ctx, stop := context.WithCancel(t.Context())
	detach, err := x.Attach(ctx, l, &hb)
	if err != nil {
		t.Fatal(err)
	}
	defer detach()
	hb.Beat()
	stop()
	hb.Beat()
	if _, failures := x.Counts(); l.extended != 1 || failures != 1 || len(log.all) != 1 {
		t.Errorf("%d extensions, %d failures, log %q; want one each, from before the stop", l.extended, failures,
			log.all)
	}
}
