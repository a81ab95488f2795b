package storetest

import (
	"bytes"
	"io"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

func restartKeeps(b *bed) {
	before := b.jobsInEveryState()
	b.reopen()
	var after []*rules.Standing
	for _, s := range before {
		after = append(after, b.standing(s.Spec.ID))
	}
	b.same("standings after a restart", after, before)
	b.onePlaceEach()
}

func restartKeepsLeases(b *bed) {
	h := b.grant(b.queued(), "w1", full)
	ended := b.grant(b.queued(), "w1", full)
	b.end(ended, completed)
	b.reopen()
	b.same("leases", b.leases(h.ID, ended.ID), map[lessor.LeaseID]*rules.Held{h.ID: h})
	var floor lessor.Instant
	b.update(func(tx scheduler.Tx) error { // a restart is a gap: the floor is not where it was
		floor = tx.Serving().Since
		return nil
	})
	if !b.Shared() && floor < h.IssuedAt { // other nodes of a shared store may have served on
		b.Fatalf("after a restart the floor is %v, before the lease of %v", floor, h.IssuedAt)
	}
	b.end(h, completed)
}

func restartSeqs(b *bed) {
	last := int64(0)
	for range 4 {
		b.update(func(tx scheduler.Tx) error {
			first, err := tx.Seqs(b.Context(), 10)
			if first <= last {
				b.Fatalf("place %d was given after %d", first, last)
			}
			last = first + 9
			return err
		})
		b.reopen()
	}
}

func closedAnswers(b *bed) {
	b.must(b.Close())
	ctx := b.Context()
	b.wants(b.Update(ctx, func(scheduler.Tx) error { return nil }), scheduler.ErrUnreachable)
	b.wants(b.View(ctx, func(scheduler.View) error { return nil }), scheduler.ErrUnreachable)
	_, err := b.Serve(ctx, false)
	b.wants(err, scheduler.ErrUnreachable)
	b.wants(b.Backup(ctx, io.Discard), scheduler.ErrUnreachable)
	b.must(b.Close()) // again is fine
	b.Store = b.open()
}

func backupStreams(b *bed) {
	if b.Shared() { // its server has better ways, and the refusal names them
		b.wants(b.Backup(b.Context(), io.Discard), lessor.ErrConflict)
		return
	}
	b.jobsInEveryState()
	var one, two bytes.Buffer
	b.must(b.Backup(b.Context(), &one))
	b.jobsInEveryState()
	b.must(b.Backup(b.Context(), &two))
	if one.Len() == 0 || bytes.Equal(one.Bytes(), two.Bytes()) {
		b.Fatalf("copies of %d and %d bytes do not differ", one.Len(), two.Len())
	}
}

func checkFindsNothing(b *bed) {
	b.jobsInEveryState()
	findings := b.Check(b.Context())
	if len(findings) == 0 {
		b.Fatal("nothing was looked at")
	}
	for _, f := range findings {
		if f.Name == "" || f.Detail == "" {
			b.Errorf("a finding says nothing: %+v", f)
		}
	}
}
