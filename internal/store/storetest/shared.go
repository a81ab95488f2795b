package storetest

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// RunShared tests a driver whose stores several nodes share. fresh prepares an empty store and returns a function that
// opens it for one more node each time it is called.
func RunShared(t *testing.T, fresh func(t *testing.T) (open func() scheduler.Store)) {
	for _, c := range []struct {
		name string
		test func(a, b *bed)
	}{
		{"Shared/LockOrder", lockOrder},
		{"Shared/NoWaitBehindTheGate", noWaitBehindGate},
		{"Shared/LeaseChangedWhileItsLockIsAwaited", leaseChangedMeanwhile},
		{"Shared/LateCommitOfAnOlderSeq", lateCommit},
		{"Shared/CancelOfAMovingJob", cancelMoving},
		{"Shared/ChangesHaveNoGaps", changesHaveNoGaps},
		{"Shared/LeaseOfAnotherNode", leaseOfAnother},
		{"Shared/CohortOfAnotherNode", cohortOfAnother},
		{"Shared/FollowSeesTheLatest", followSeesLatest},
		{"Shared/GateExcludes", gateExcludes},
		{"Shared/OneJobAKey", oneJobAKeyRaced},
		{"Shared/OneNumberALane", oneNumberALane},
		{"Shared/SeqsAreNotShared", seqsAreNotShared},
		{"Shared/RestartOfOneMovesNoFloor", restartMovesNoFloor},
		{"Shared/ShortLivesAreNoService", shortLivesAreNoService},
		{"Shared/HighestRatingCounts", highestRating},
		{"Shared/NodesExchangeWorkers", nodesExchangeWorkers},
		{"Shared/OneOfTwoSavesServing", servingRaced},
		{"Shared/AnsweredOnceOrRefused", answeredOnce},
		{"Shared/EachTickOnce", eachTickOnce},
		{"Shared/NoFailureIsLost", noFailureIsLost},
		{"Shared/LockedCircuitIsLeftOut", lockedCircuitIsLeftOut},
		{"Shared/LockedDefinitionIsWaitedFor", lockedDefinitionIsWaitedFor},
		{"Shared/NewDefinitionIsNotOverwritten", newDefinitionIsNotOverwritten},
	} {
		t.Run(c.name, func(t *testing.T) {
			open := fresh(t)
			const apart = 1 << 32 // so that the two make different ids
			a, b := &bed{T: t, open: open, Store: open()}, &bed{T: t, open: open, Store: open(), count: apart}
			for _, node := range []*bed{a, b} {
				t.Cleanup(func() {
					if err := node.Close(); err != nil {
						t.Errorf("close: %v", err)
					}
				})
			}
			if !a.Shared() {
				t.Fatal("this store is not shared")
			}
			c.test(a, b)
		})
	}
}

// leaseChangedMeanwhile changes a lease for whose lock another node waits: that node sees the change, and a later
// clock.
func leaseChangedMeanwhile(a, b *bed) {
	h := a.grant(a.queued(), "w1")
	locked, asked, found := make(chan struct{}), make(chan struct{}), make(chan *rules.Held)
	const held = 200 * time.Millisecond
	var wg sync.WaitGroup
	wg.Go(func() {
		a.update(func(tx scheduler.Tx) error {
			got, err := tx.Leases(a.Context(), []lessor.LeaseID{h.ID})
			if err != nil {
				return err
			}
			close(locked)
			<-asked
			time.Sleep(held) //nolint:forbidigo // the other node must wait in the server
			got[h.ID].ExpiresAt += 5000
			return tx.SaveLeases(a.Context(), []*rules.Held{got[h.ID]})
		})
	})
	<-locked
	wg.Go(func() {
		b.update(func(tx scheduler.Tx) error {
			before := tx.Now()
			close(asked)
			got, err := tx.Leases(b.Context(), []lessor.LeaseID{h.ID})
			if waited := tx.Now().Sub(before); waited < held {
				b.Errorf("the clock moved by %v while a lock was waited for, want at least %v", waited, held)
			}
			found <- got[h.ID]
			return err
		})
	})
	if got := <-found; got == nil || got.ExpiresAt != h.ExpiresAt+5000 {
		b.Errorf("the lease is seen as %+v, want it to end at %v", got, h.ExpiresAt+5000)
	}
	wg.Wait()
}

// leaseOfAnother changes and ends on one node a lease that the other granted: both see the same.
func leaseOfAnother(a, b *bed) {
	h := a.grant(a.queued(), "w1", full)
	for i, node := range []*bed{b, a, b} {
		h.ExpiresAt, h.FirstBeatAt, h.BeatAt, h.TTL = h.ExpiresAt+5, h.IssuedAt+1, h.BeatAt+3, h.TTL+time.Second
		h.CancelAt, h.WatchUntil, h.Reattached = h.IssuedAt+lessor.Instant(i), h.WatchUntil+1, i
		node.update(func(tx scheduler.Tx) error { return tx.SaveLeases(node.Context(), []*rules.Held{h}) })
		for _, reader := range []*bed{a, b} {
			reader.same("lease", reader.leases(h.ID, a.leaseID()), map[lessor.LeaseID]*rules.Held{h.ID: h})
		}
	}
	h.CancelAt = 0 // else its job would end too
	b.end(h, released)
	a.same("lease that ended on the other node", a.leases(h.ID), nil)
	s := a.standing(h.Turn.Job).Spec
	other := b.grant(s, "w2")
	a.same("leases", a.leases(h.ID, other.ID), map[lessor.LeaseID]*rules.Held{other.ID: other})
	a.end(other, completed)
	b.same("lease that ended on the other node", b.leases(other.ID), nil)
}

// lateCommit commits a job after a job with a later place in line. A node that follows the streams sees both.
func lateCommit(a, b *bed) {
	follower := &bed{T: a.T, Store: a.open()}
	defer func() { a.must(follower.Close()) }()
	known := a.queued() // registers the lane, for which the second node would wait
	position := follower.position()
	reserved, commit := make(chan bool), make(chan bool)
	older, newer := a.draft(), b.draft()
	var wg sync.WaitGroup
	wg.Go(func() {
		a.update(func(tx scheduler.Tx) error {
			if err := insert(a.Context(), tx, older); err != nil {
				return err
			}
			close(reserved)
			<-commit
			return errors.Join(tx.Move(a.Context(), []scheduler.Move{enqueue(older, tx.Now())}),
				tx.Publish(a.Context(), []byte("older")))
		})
	})
	<-reserved
	b.update(func(tx scheduler.Tx) error {
		return errors.Join(insert(b.Context(), tx, newer),
			tx.Move(b.Context(), []scheduler.Move{enqueue(newer, tx.Now())}),
			tx.Publish(b.Context(), []byte("newer")))
	})
	b.same("changes before the late commit", follower.follow(position), []string{"newer"})
	close(commit)
	wg.Wait()
	if older.Seq > newer.Seq {
		b.Fatalf("the test needs the older job first: places %d and %d", older.Seq, newer.Seq)
	}
	b.same("changes after the late commit", follower.follow(position), []string{"older"})
	var seqs []int64
	b.view(func(v scheduler.View) error {
		return v.EachQueued(b.Context(), func(t rules.Turn) error {
			seqs = append(seqs, t.Seq)
			return nil
		})
	})
	slices.Sort(seqs)
	b.same("the queue", seqs, []int64{known.Seq, older.Seq, newer.Seq})
}
