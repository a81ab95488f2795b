// Package mailboxtest says what a worker.Mailbox must do. Each mailbox's own test calls Run; what is not tested here
// is not promised.
//
// A mailbox whose time is the process's runs in bubbles, where waiting costs nothing. One that keeps the time of a
// server is run in real time, in short units and side by side.
package mailboxtest

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lessor/worker"
)

// Config says which mailbox is tested and what the suite must know of it. Only Open is required.
type Config struct {
	// Open returns a new, empty mailbox. What it holds open is closed with t. It is called inside the bubble.
	Open func(t testing.TB) worker.Mailbox
	// OpenSmall returns a mailbox that holds at most length messages; nil where a mailbox has no length of its own.
	OpenSmall func(t testing.TB, length int) worker.Mailbox
	// Unit is the time in which the suite counts, for a mailbox in real time. Zero means fake time, counted in seconds.
	Unit time.Duration
	// Late is how long after its time a message may become visible, or a dead letter; a dead letter need not be one
	// before somebody receives.
	Late time.Duration
	// Lives is how many random lives are tried. Zero means a dozen in real time; else it is left to rapid, which also
	// shrinks what fails.
	Lives int
	// MaxBody is how long a body may be. Zero means worker.MaxBody.
	MaxBody int
	// RepliesAnyway says that Reply also works where the sender named no mailbox for it.
	RepliesAnyway bool
}

// Run tests the mailbox.
func Run(t *testing.T, cfg Config) {
	if cfg.MaxBody == 0 {
		cfg.MaxBody = worker.MaxBody
	}
	var all sync.WaitGroup
	defer all.Wait()
	run := func(name string, test func(t *testing.T)) {
		if cfg.Unit == 0 {
			t.Run(name, test)
			return
		}
		all.Go(func() { t.Run(name, test) }) // not t.Parallel, which lets only as many wait as there are processors
	}
	for _, c := range cases {
		run(c.name, func(t *testing.T) { cfg.run(t, c.test) })
	}
	randomLives(cfg, run)
}

// run runs one test, in a bubble unless time is real.
func (cfg Config) run(t *testing.T, test func(b *bed)) {
	if cfg.Unit > 0 {
		test(&bed{T: t, cfg: cfg, unit: cfg.Unit, Mailbox: cfg.Open(t)})
		return
	}
	synctest.Test(t, func(t *testing.T) {
		test(&bed{T: t, cfg: cfg, unit: time.Second, Mailbox: cfg.Open(t)})
	})
}

// bed is a mailbox under test, and the words in which the tests speak to it.
type bed struct {
	*testing.T
	worker.Mailbox
	cfg  Config
	unit time.Duration
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// send puts bodies into the mailbox and returns their ids.
func (b *bed) send(bodies ...string) []string {
	b.Helper()
	ids := make([]string, len(bodies))
	for i, body := range bodies {
		id, err := b.Send(b.Context(), []byte(body), nil)
		b.must(err)
		ids[i] = id
	}
	return ids
}

// now receives what is there, without waiting.
func (b *bed) now(n, visibility int) []worker.Message {
	b.Helper()
	got, err := b.Receive(b.Context(), n, b.units(visibility), 0)
	b.must(err)
	return got
}

// one receives a message that should be there by now, hiding it for so many units.
func (b *bed) one(visibility int) worker.Message {
	b.Helper()
	got, err := b.Receive(b.Context(), 1, b.units(visibility), min(worker.MaxWait, b.cfg.Late+b.unit/2))
	b.must(err)
	if len(got) != 1 {
		b.Fatalf("%d messages were received, want the one that is there", len(got))
	}
	return got[0]
}

// none fails the test if a message is to be seen.
func (b *bed) none(when string) {
	b.Helper()
	if got := b.now(worker.MaxBatch, 0); len(got) > 0 {
		b.Fatalf("message %q was received %s", got[0].Body(), when)
	}
}

// over fails the test unless the delivery is over: no method may do anything.
func (b *bed) over(m worker.Message, when string) {
	b.Helper()
	ctx := b.Context()
	for _, use := range []struct {
		name string
		err  error
	}{
		{"Extend", m.Extend(ctx, b.unit)},
		{"Reply", m.Reply(ctx, []byte("late"))},
		{"Nack", m.Nack(ctx, 0)},
		{"Return", m.Return(ctx)},
		{"Acknowledge", m.Acknowledge(ctx)},
	} {
		b.wants(use.err, worker.ErrReceiptExpired, use.name+" "+when)
	}
}

// dead fails the test unless exactly these are the dead letters.
func (b *bed) dead(ids ...string) {
	b.Helper()
	by := time.Now().Add(b.cfg.Late)
	for {
		got, err := b.DeadLetters(b.Context(), 100)
		b.must(err)
		if len(got) != len(ids) && time.Now().Before(by) {
			b.pass(b.unit / 4)
			continue
		}
		if len(got) != len(ids) {
			b.Fatalf("%d dead letters, want %d", len(got), len(ids))
		}
		for i, d := range got {
			if d.ID != ids[i] || d.Deliveries != worker.MaxDeliveries {
				b.Fatalf("dead letter %s after %d deliveries, want %s after %d",
					d.ID, d.Deliveries, ids[i], worker.MaxDeliveries)
			}
		}
		return
	}
}

func (b *bed) units(n int) time.Duration { return time.Duration(n) * b.unit }

// pass lets time go by.
func (b *bed) pass(d time.Duration) { <-time.After(d) }
