package mailboxtest

import (
	"sync"
	"time"

	"lessor/worker"
)

func bounds(b *bed) {
	ctx := b.Context()
	send := func(n int) error {
		_, err := b.Send(ctx, make([]byte, n), nil)
		return err
	}
	receive := func(n int, visibility, wait time.Duration) error {
		_, err := b.Receive(ctx, n, visibility, wait)
		return err
	}
	b.send("a")
	m := b.one(60)
	for what, err := range map[string]error{
		"an empty body":                 send(0),
		"a body that is too long":       send(b.cfg.MaxBody + 1),
		"a batch of none":               receive(0, 0, 0),
		"a batch that is too large":     receive(worker.MaxBatch+1, 0, 0),
		"a visibility below zero":       receive(1, -1, 0),
		"a visibility that is too long": receive(1, worker.MaxVisibility+1, 0),
		"a wait below zero":             receive(1, 0, -1),
		"a wait that is too long":       receive(1, 0, worker.MaxWait+1),
		"an extension below zero":       m.Extend(ctx, -1),
		"an extension that is too long": m.Extend(ctx, worker.MaxVisibility+1),
		"a delay below zero":            m.Nack(ctx, -1),
		"a delay that is too long":      m.Nack(ctx, worker.MaxVisibility+1),
		"a reply that is too long":      m.Reply(ctx, make([]byte, b.cfg.MaxBody+1)),
	} {
		b.wants(err, worker.ErrOutOfBounds, what)
	}
	b.must(m.Extend(ctx, worker.MaxVisibility))
	b.must(m.Nack(ctx, worker.MaxVisibility))
	b.none("that is to be hidden for twelve hours")
}

func closed(b *bed) {
	b.send("a")
	m := b.one(60)
	errs := make(chan error, 3)
	began := time.Now()
	for range cap(errs) {
		go func() {
			_, err := b.Receive(b.Context(), 1, b.unit, b.units(10))
			errs <- err
		}()
	}
	b.pass(b.unit)
	b.must(b.Close())
	for range cap(errs) {
		b.wants(<-errs, worker.ErrMailboxClosed, "a receiver that waited")
	}
	if took := time.Since(began); took >= b.units(10) {
		b.Errorf("the receivers were woken after %s", took)
	}
	_, err := b.Send(b.Context(), []byte("a"), nil)
	b.wants(err, worker.ErrMailboxClosed, "Send")
	_, err = b.Receive(b.Context(), 1, b.unit, 0)
	b.wants(err, worker.ErrMailboxClosed, "Receive")
	b.must(m.Extend(b.Context(), b.unit))
	b.must(m.Acknowledge(b.Context()))
	b.must(b.Close())
}

// shared receives and acknowledges concurrently: each message must be delivered once.
func shared(b *bed) {
	const messages, receivers = 60, 6
	for range messages {
		b.send("a")
	}
	var mu sync.Mutex
	seen := map[string]int{}
	var all sync.WaitGroup
	for range receivers {
		all.Go(func() {
			for {
				got, err := b.Receive(b.Context(), 3, b.units(60), b.unit+b.cfg.Late)
				if err != nil {
					b.Error(err)
				}
				if len(got) == 0 {
					return
				}
				for _, m := range got {
					if err := m.Acknowledge(b.Context()); err != nil {
						b.Error(err)
					}
					mu.Lock()
					seen[m.ID()]++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	for id, n := range seen {
		if n != 1 {
			b.Errorf("message %s was delivered %d times", id, n)
		}
	}
	if len(seen) != messages {
		b.Errorf("%d messages were delivered, want %d", len(seen), messages)
	}
}
