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
	takeKeys   = wire.SQL("insert into idempotency (" + keyColumns + ") " +
		wire.Unnest(row.Kinds(row.Key), keyColumns) + " on conflict do nothing")
	readKeys = wire.SQL("select " + row.Of("i", keyColumns) + " from (" + wire.Unnest("ut", "tenant, key") + ") k" +
		" join idempotency i on " + wire.At("i.tenant", "k.tenant") + " and i.key = k.key")
	freeKeys = wire.SQL("delete from idempotency i using (" + wire.Unnest("ut", "tenant, key") + ") k" +
		" where " + wire.At("i.tenant", "k.tenant") + " and i.key = k.key")
)

// TakeKeys implements scheduler.Tx. All nodes insert keys in one order, because an insert waits for another node's
// insert of the same key. The holders are read afterwards.
func (t *tx) TakeKeys(_ context.Context, wanted []scheduler.JobKey) (map[scheduler.Key]scheduler.KeyHolder, error) {
	holders := make(map[scheduler.Key]scheduler.KeyHolder)
	if len(wanted) == 0 || t.err != nil {
		return holders, t.err
	}
	first := slices.Clone(wanted)
	slices.SortStableFunc(first, func(a, b scheduler.JobKey) int { return compareKeys(a.Key, b.Key) })
	first = slices.CompactFunc(first, func(a, b scheduler.JobKey) bool { return a.Key == b.Key })
	params := rowsOf(&t.view, first, row.Key).Params()
	if err := t.write("take idempotency keys", wire.Step{Stmt: takeKeys}, params...); err != nil {
		return nil, err
	}
	t.add("take idempotency keys", wire.Step{Stmt: readKeys, Each: func(r *wire.Row) error {
		var held scheduler.JobKey
		row.Key(decode(r), &held)
		holders[held.Key] = held.KeyHolder
		return nil
	}}, params[:2]...)
	return holders, t.trip("take idempotency keys") // the insert waits for a key that is on its way
}

func compareKeys(a, b scheduler.Key) int {
	if c := bytes.Compare(a.Tenant.UUID[:], b.Tenant.UUID[:]); c != 0 {
		return c
	}
	return strings.Compare(a.Key, b.Key)
}

// FreeKeys implements scheduler.Tx.
func (t *tx) FreeKeys(_ context.Context, keys []scheduler.Key) error {
	if len(keys) == 0 {
		return t.err
	}
	r := t.scratch.Reset()
	for _, k := range keys {
		r.Next()
		r.ID(k.Tenant.UUID)
		r.Text(k.Key)
	}
	return t.write("free idempotency keys", wire.Step{Stmt: freeKeys}, r.Params()...)
}
