package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

func viewSeesSnapshot(b *bed) {
	s := b.queued()
	b.view(func(v scheduler.View) error {
		before := b.turnIn(v, s.ID)
		h := b.grant(s, "w1") // committed while the view is open
		other := b.queued()
		b.same("turn in the view", b.turnIn(v, s.ID), before)
		all, err := v.Standings(b.Context(), []lessor.JobID{s.ID, other.ID})
		if err != nil {
			return err
		}
		if all[s.ID].Place != rules.InQueue || all[other.ID] != nil {
			b.Fatal("the view sees what was committed after it began")
		}
		b.same("the next view", b.standing(s.ID).Held, h)
		if now := v.Now(); now < before.QueuedAt {
			b.Fatalf("the view's clock, %v, is behind what it sees, %v", now, before.QueuedAt)
		}
		return nil
	})
}

// neverHalf moves a group of jobs together again and again, while views check that all are in one place.
func neverHalf(b *bed) {
	var specs []*rules.Spec
	var ids []lessor.JobID
	for range 20 {
		s := b.draft()
		specs, ids = append(specs, s), append(ids, s.ID)
	}
	b.submit(specs...)
	ctx, stop := context.WithCancel(b.Context())
	var viewers sync.WaitGroup
	faults := make(chan error, 3)
	for range cap(faults) {
		viewers.Go(func() {
			for ctx.Err() == nil {
				if err := b.View(b.Context(), func(v scheduler.View) error {
					return together(b.Context(), v, ids)
				}); err != nil {
					faults <- err
					return
				}
			}
		})
	}
	from, to := rules.InQueue, rules.Delayed
	for round := range 60 {
		b.update(func(tx scheduler.Tx) error {
			for _, s := range specs { // one call each: more than one statement a transaction
				m := scheduler.Move{
					From: from, To: to, Turn: firstTurn(s, tx.Now()), Wait: rules.Wait{Until: 1, State: lessor.Queued},
				}
				if round > 0 {
					m.Turn.RowRef = 0 // it has come back
				}
				if err := tx.Move(b.Context(), []scheduler.Move{m}); err != nil {
					return err
				}
			}
			return nil
		})
		from, to = to, from
	}
	stop()
	viewers.Wait()
	close(faults)
	for err := range faults {
		b.Error(err)
	}
}

func together(ctx context.Context, v scheduler.View, ids []lessor.JobID) error {
	all, err := v.Standings(ctx, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if all[id] == nil || all[id].Place != all[ids[0]].Place {
			return fmt.Errorf("job %s is not where the first is: a view saw half a transaction", id)
		}
	}
	return nil
}

func eachStops(b *bed) {
	for range 3 {
		b.queued(func(s *rules.Spec) { s.Lane.Units = int(b.count) })
		b.grant(b.queued(), "w1")
	}
	read := func(v scheduler.View) error {
		ctx, n := b.Context(), 0
		stop := func() error {
			n++
			return errTest
		}
		for what, err := range map[string]error{
			"EachLane":   v.EachLane(ctx, func(rules.LaneID, rules.Lane) error { return stop() }),
			"EachQueued": v.EachQueued(ctx, func(rules.Turn) error { return stop() }),
			"EachLease":  v.EachLease(ctx, func(*rules.Held) error { return stop() }),
		} {
			if !errors.Is(err, errTest) {
				b.Errorf("%s: got error %v, want the one that its fn returned", what, err)
			}
		}
		if n != 3 {
			b.Errorf("fn was called %d times by three readers, and wanted no more each time", n)
		}
		return nil
	}
	b.view(read)
	b.update(func(tx scheduler.Tx) error { return read(tx) })
	b.onePlaceEach() // nothing is left open
}

func servingKept(b *bed) {
	var saved rules.Serving
	save := func(brake lessor.Instant, end error) error {
		return b.Update(b.Context(), func(tx scheduler.Tx) error {
			s := tx.Serving()
			if s.LastBeat != tx.Now() {
				b.Fatalf("in a transaction of %v the last service was at %v", tx.Now(), s.LastBeat)
			}
			s.BrakeUntil, s.LapsedAt = brake, brake+1
			if end == nil {
				saved = s
			}
			if err := tx.SaveServing(b.Context(), s); err != nil {
				return err
			}
			return end
		})
	}
	b.must(save(100, nil))
	b.wants(save(200, errTest), errTest)
	b.view(func(v scheduler.View) error {
		got := v.Serving()
		if got.BrakeUntil != 100 || got.LapsedAt != 101 || got.Since != saved.Since {
			b.Fatalf("serving is %+v, want what was committed: %+v", got, saved)
		}
		return nil
	})
	got, err := b.Serve(b.Context(), false)
	b.must(err)
	if got.BrakeUntil != 100 || got.LastBeat < saved.LastBeat {
		b.Fatalf("serving goes on as %+v after %+v", got, saved)
	}
	anew, err := b.Serve(b.Context(), true)
	b.must(err)
	if anew.Since != anew.LastBeat || anew.LastBeat < got.LastBeat || anew.BrakeUntil != got.BrakeUntil {
		b.Fatalf("service that begins anew is %+v after %+v, want since now and nothing else", anew, got)
	}
}
