package postgres

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

var (
	keyColumns = row.Columns(row.Key)
	claimKeys  = wire.SQL("insert into idempotency (" + keyColumns + ") " +
		wire.Unnest(row.Kinds(row.Key), keyColumns) + " on conflict do nothing")
	readKeys = wire.SQL("select " + row.Of("i", keyColumns) + " from (" + wire.Unnest("ut", "tenant, key") + ") k" +
		" join idempotency i on " + wire.At("i.tenant", "k.tenant") + " and i.key = k.key")
	unclaimKeys = wire.SQL("delete from idempotency i using (" + wire.Unnest("ut", "tenant, key") + ") k" +
		" where " + wire.At("i.tenant", "k.tenant") + " and i.key = k.key")
)

// Claim implements scheduler.Tx. All nodes insert keys in one order, because an insert waits for another node's insert
// of the same key. The holders are read afterwards.
func (t *tx) Claim(_ context.Context, claims []scheduler.Claim) (map[scheduler.Key]scheduler.KeyHolder, error) {
	holders := make(map[scheduler.Key]scheduler.KeyHolder)
	if len(claims) == 0 || t.err != nil {
		return holders, t.err
	}
	first := slices.Clone(claims)
	slices.SortStableFunc(first, func(a, b scheduler.Claim) int { return compareKeys(a.Key, b.Key) })
	first = slices.CompactFunc(first, func(a, b scheduler.Claim) bool { return a.Key == b.Key })
	params := rowsOf(&t.view, first, row.Key).Params()
	if err := t.write("claim idempotency keys", wire.Step{Stmt: claimKeys}, params...); err != nil {
		return nil, err
	}
	t.add("claim idempotency keys", wire.Step{Stmt: readKeys, Each: func(r *wire.Row) error {
		var held scheduler.Claim
		row.Key(decode(r), &held)
		holders[held.Key] = held.KeyHolder
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
	r := t.scratch.Reset()
	for _, k := range keys {
		r.Next()
		r.ID(k.Tenant.UUID)
		r.Text(k.Key)
	}
	return t.write("give idempotency keys back", wire.Step{Stmt: unclaimKeys}, r.Params()...)
}
