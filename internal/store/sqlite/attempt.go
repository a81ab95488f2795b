package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/row"
)

var (
	attemptColumns = row.Columns(row.Attempt)
	readAttempts   = "select " + attemptColumns + " from attempt where job = ? order by fence"
	readFailure    = "select " + row.Columns(row.Failure) + " from attempt" +
		" where job = ? and outcome in ('failed', 'expired') order by fence desc limit 1"

	noteColumns = row.Columns(row.Note)
	readNotes   = "select " + noteColumns + " from note where job = ? order by id"

	// The attempt under a lease: the last one of a job, and any other.
	ofDone        = " from done join lane on lane.id = done.lane where seq = ? and lease = ?"
	ofAttempt     = " from attempt join lane on lane.id = attempt.lane where lease = ?"
	leaseEnd      = "select " + row.Columns(row.LeaseEnd)
	attemptTenant = "select " + attemptColumns + ", tenant"
)

const readFirstGrant = "select granted_at from attempt where job = ? order by fence limit 1"

// firstGrant returns when the first of the attempts began after which the job continued; 0 if there is none.
func (v *view) firstGrant(id lessor.JobID) (at lessor.Instant, err error) {
	err = query(v.conn, readFirstGrant, func(a *args) { a.ID(id.UUID) }, func(r *result) error {
		at = r.instant()
		return nil
	})
	return at, err
}

// LeaseEnds implements scheduler.View.
func (v *view) LeaseEnds(ctx context.Context, ids []lessor.LeaseID) (map[lessor.LeaseID]scheduler.LeaseEnd, error) {
	ends := make(map[lessor.LeaseID]scheduler.LeaseEnd)
	for _, id := range ids {
		err := v.queryEnd(id, leaseEnd, func(r *result) error {
			var end scheduler.LeaseEnd
			row.LeaseEnd(r.codec, &end)
			ends[id] = end
			return nil
		})
		if err != nil {
			return nil, readFault(ctx, "read ends of leases", err)
		}
	}
	return ends, nil
}

// queryEnd reads the attempt that was made under a lease. A job's last attempt is found by the seq in the id of the
// lease, any other by the id.
func (v *view) queryEnd(id lessor.LeaseID, text string, visit func(*result) error) error {
	err := query(v.conn, text+ofDone, func(a *args) {
		a.Int(v.seal.Seq(id))
		a.ID(id.UUID)
	}, visit)
	if err != nil {
		return err
	}
	return query(v.conn, text+ofAttempt, func(a *args) { a.ID(id.UUID) }, visit)
}

// AttemptOf implements scheduler.View.
func (v *view) AttemptOf(
	ctx context.Context, id lessor.LeaseID,
) (made *rules.Attempt, tenant lessor.TenantID, err error) {
	err = v.queryEnd(id, attemptTenant, func(r *result) error {
		made = &rules.Attempt{}
		row.Attempt(r.codec, made)
		tenant.UUID = r.ID()
		return nil
	})
	return made, tenant, readFault(ctx, "read an attempt", err)
}

// Note implements scheduler.Tx.
func (t *tx) Note(_ context.Context, notes []rules.Note) error {
	return insert(t, "note", &t.w.note, notes, row.Note)
}
