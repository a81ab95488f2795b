// Package mailboxtest defines what a worker.Mailbox must do. The test of each mailbox calls Run. What is not tested
// here is not promised.
//
// A mailbox that uses the clock of the process is tested in bubbles (testing/synctest), where waiting costs nothing. A
// mailbox that uses the clock of a server is tested in real time, in short units and with its tests in parallel.
package mailboxtest

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lessor/worker"
)

// Config describes the mailbox under test. Only Open is required.
type Config struct {
	// Open returns a new, empty mailbox. It closes its resources at the end of t. It is called inside the
	// bubble.
	Open func(t testing.TB) worker.Mailbox
	// OpenSmall returns a mailbox that holds at most length messages; nil = the mailbox has no such limit.
	OpenSmall func(t testing.TB, length int) worker.Mailbox
	// Unit is the unit of time of the tests, for a mailbox in real time. Zero means fake time, in seconds.
	Unit time.Duration
	// Late is how much later than its time a message may become visible or a dead letter. It need not become a dead
	// letter before the next Receive.
	Late time.Duration
	// Lives is the number of random sequences of calls. Zero means a dozen in real time; in fake time it means the
	// default of rapid, which also shrinks failures.
	Lives int
	// MaxBody is the maximum length of a body. Zero means worker.MaxBody.
	MaxBody int
	// RepliesAnyway says that Reply also works if the sender named no mailbox for replies.
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
		all.Go(func() { t.Run(name, test) }) // not t.Parallel, which runs only as many tests as there are processors
	}
	for _, c := range cases {
		run(c.name, func(t *testing.T) { cfg.run(t, c.test) })
	}
	randomLives(cfg, run)
}

// run runs one test, in a bubble unless the mailbox needs real time.
func (cfg Config) run(t *testing.T, test func(b *bed)) {
	if cfg.Unit > 0 {
		test(&bed{T: t, cfg: cfg, unit: cfg.Unit, Mailbox: cfg.Open(t)})
		return
	}
	synctest.Test(t, func(t *testing.T) {
		test(&bed{T: t, cfg: cfg, unit: time.Second, Mailbox: cfg.Open(t)})
	})
}

// bed is a mailbox under test, with the helpers of the tests.
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

// now receives the messages that are visible, without waiting.
func (b *bed) now(n, visibility int) []worker.Message {
	b.Helper()
	got, err := b.Receive(b.Context(), n, b.units(visibility), 0)
	b.must(err)
	return got
}

// one receives a message that must be visible by now, and hides it for some units.
func (b *bed) one(visibility int) worker.Message {
	b.Helper()
	got, err := b.Receive(b.Context(), 1, b.units(visibility), min(worker.MaxWait, b.cfg.Late+b.unit/2))
	b.must(err)
	if len(got) != 1 {
		b.Fatalf("%d messages were received, want the one that is there", len(got))
	}
	return got[0]
}

// none fails the test if a message is visible.
func (b *bed) none(when string) {
	b.Helper()
	if got := b.now(worker.MaxBatch, 0); len(got) > 0 {
		b.Fatalf("message %q was received %s", got[0].Body(), when)
	}
}

// over fails the test unless the delivery is over: no method may have an effect.
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
