package postgres

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"lessor"
	"lessor/internal/scheduler"
)

const (
	keyColumns = "tenant, key, job, body_hash"
	keyTypes   = "utuy"
)

var (
	claimKeys = sql("insert into idempotency (" + keyColumns + ") " + unnestAs(keyTypes, keyColumns) + " on conflict do nothing")
	readKeys  = sql("select " + of("i", keyColumns) + " from (" + unnestAs("ut", "tenant, key") + ") k" +
		" join idempotency i on " + at("i.tenant", "k.tenant") + " and i.key = k.key")
	unclaimKeys = sql("delete from idempotency i using (" + unnestAs("ut", "tenant, key") + ") k" +
		" where " + at("i.tenant", "k.tenant") + " and i.key = k.key")
)

// Claim implements scheduler.Tx. Keys are inserted in one order by all nodes: an insert waits for another node's of the same
// key, and who holds it is read afterwards.
func (t *tx) Claim(_ context.Context, claims []scheduler.Claim) (map[scheduler.Key]scheduler.KeyHolder, error) {
	holders := make(map[scheduler.Key]scheduler.KeyHolder)
	if len(claims) == 0 || t.err != nil {
		return holders, t.err
	}
	first := slices.Clone(claims)
	slices.SortStableFunc(first, func(a, b scheduler.Claim) int { return compareKeys(a.Key, b.Key) })
	first = slices.CompactFunc(first, func(a, b scheduler.Claim) bool { return a.Key == b.Key })
	r := t.scratch.reset()
	for i := range first {
		c := &first[i]
		r.row()
		r.id(c.Tenant.UUID)
		r.text(c.Key.Key)
		r.id(c.Job.UUID)
		r.bytes(c.BodyHash[:])
	}
	params := r.params()
	if err := t.write("claim idempotency keys", step{stmt: claimKeys}, params...); err != nil {
		return nil, err
	}
	t.add("claim idempotency keys", step{stmt: readKeys, each: func(r *row) error {
		k := scheduler.Key{Tenant: lessor.TenantID{UUID: r.id()}, Key: r.text()}
		h := scheduler.KeyHolder{Job: lessor.JobID{UUID: r.id()}}
		copy(h.BodyHash[:], r.value())
		holders[k] = h
		return nil
	}}, params[:2]...)
	return holders, t.trip("claim idempotency keys") // the insert waits for a key that is on its way
}

func compareKeys(a, b scheduler.Key) int {
	if c := bytes.Compare(a.Tenant.UUID[:], b.Tenant.UUID[:]); c != 0 {
		return c
	}
	return strings.Compare(a.Key, b.Key)
}

// Unclaim implements scheduler.Tx.
func (t *tx) Unclaim(_ context.Context, keys []scheduler.Key) error {
	if len(keys) == 0 {
		return t.err
	}
	r := t.scratch.reset()
	for _, k := range keys {
		r.row()
		r.id(k.Tenant.UUID)
		r.text(k.Key)
	}
	return t.write("give idempotency keys back", step{stmt: unclaimKeys}, r.params()...)
}
