package storetest

import (
	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// lockReads compares reads that lock with reads that do not, in a transaction that has changed a row.
func lockReads(b *bed) {
	ids := []lessor.JobID{b.jobID()}
	for _, s := range b.jobsInEveryState() {
		ids = append(ids, s.Spec.ID)
	}
	h := b.grant(b.queued(), "w1", full)
	gone := b.grant(b.queued(), "w1")
	b.end(gone, completed)
	b.update(func(tx scheduler.Tx) error {
		ctx := b.Context()
		extended := *h
		extended.ExpiresAt++
		b.must(tx.SaveLeases(ctx, []*rules.Held{&extended}))
		want := map[lessor.LeaseID]*rules.Held{h.ID: &extended}
		peeked, err := tx.Peek(ctx, []lessor.LeaseID{h.ID, gone.ID, b.leaseID()})
		b.must(err)
		b.same("leases, peeked at", peeked, want)
		peeked[h.ID].ExpiresAt = 1 // a copy
		locked, err := tx.Leases(ctx, []lessor.LeaseID{h.ID, gone.ID, b.leaseID()})
		b.must(err)
		b.same("leases, locked", locked, want)
		read, err := tx.Standings(ctx, ids)
		b.must(err)
		standings, err := tx.Lock(ctx, ids)
		b.must(err)
		b.same("standings, locked", standings, read)
		return tx.Gate(ctx)
	})
}

// soleNodeHasNoOthers: a store that is not shared accepts what is published for other nodes, and returns no changes.
func soleNodeHasNoOthers(b *bed) {
	if b.Shared() {
		b.Skip("this store is shared")
	}
	b.update(func(tx scheduler.Tx) error {
		b.must(tx.Gate(b.Context()))
		return tx.Publish(b.Context(), []byte("a change"))
	})
	b.view(func(v scheduler.View) error {
		position, err := v.Position(b.Context())
		b.must(err)
		b.same("position", position, nil)
		changes, err := v.Changes(b.Context(), position)
		b.same("changes", changes, nil)
		return err
	})
}
