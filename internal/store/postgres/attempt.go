package postgres

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

var (
	attemptColumns = row.Columns(row.Attempt)
	readAttempts   = wire.SQL("select " + attemptColumns +
		" from attempt where job = any($1::uuid[]) order by job, fence")

	noteColumns = row.Columns(row.Note)
	insertNotes = insertInto("note", row.Note)
	readNotes   = wire.SQL("select " + noteColumns + " from note where job = any($1::uuid[]) order by job, id")

	// The attempts under leases: the last one of a job, which the seq in the id of the lease finds, and any other.
	leaseEnd      = "select lease, " + row.Columns(row.LeaseEnd)
	readLeaseEnds = wire.SQL(leaseEnd + " from done join lane on lane.id = done.lane" +
		" where done.seq = any($1::bigint[]) and lease = any($2::uuid[]) union all " +
		leaseEnd + " from attempt join lane on lane.id = attempt.lane where lease = any($2::uuid[])")
	readAttemptOf = wire.SQL("select " + row.Of("e", attemptColumns) + ", n.tenant from done e" +
		" join lane n on n.id = e.lane where e.seq = $1::bigint and e.lease = $2::uuid" +
		" union all select " + row.Of("a", attemptColumns) + ", n.tenant from attempt a" +
		" join lane n on n.id = a.lane where a.lease = $2")
)

// LeaseEnds implements scheduler.View.
func (v *view) LeaseEnds(_ context.Context, ids []lessor.LeaseID) (map[lessor.LeaseID]scheduler.LeaseEnd, error) {
	ends := make(map[lessor.LeaseID]scheduler.LeaseEnd)
	if len(ids) == 0 || v.err != nil {
		return ends, v.err
	}
	err := v.query("read ends of leases", readLeaseEnds, func(r *wire.Row) error {
		id := lessor.LeaseID{UUID: r.ID()}
		var end scheduler.LeaseEnd
		row.LeaseEnd(decode(r), &end)
		ends[id] = end
		return nil
	}, v.leaseKeys(ids)...)
	return ends, err
}

// AttemptOf implements scheduler.View.
func (v *view) AttemptOf(_ context.Context, id lessor.LeaseID) (a *rules.Attempt, tenant lessor.TenantID, err error) {
	err = v.query("read an attempt", readAttemptOf, func(r *wire.Row) error {
		a = &rules.Attempt{}
		row.Attempt(decode(r), a)
		tenant.UUID = r.ID()
		return nil
	}, wire.Int8(v.store.seal.Seq(id)), wire.ID(id.UUID))
	return a, tenant, err
}

// Note implements scheduler.Tx.
func (t *tx) Note(_ context.Context, notes []rules.Note) error {
	return save(t, "note", insertNotes, notes, row.Note)
}
