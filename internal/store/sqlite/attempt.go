package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

const (
	endColumns     = "lease, worker, granted_at, first_beat_at, ended_at, outcome, said, reason, actor, error, taker"
	attemptColumns = turnColumns + ", " + endColumns

	readAttempts  = "select " + attemptColumns + " from attempt where job = ? order by fence"
	readLastError = "select outcome, reason, error, lease from attempt where job = ? and outcome in ('failed', 'expired')" +
		" order by fence desc limit 1"
	readFirstGrant = "select granted_at from attempt where job = ? order by fence limit 1"

	endOfAttempt = "select worker, tenant, outcome, said, reason from attempt join lane on lane.id = attempt.lane where lease = ?"
	endOfDone    = "select worker, tenant, outcome, said, reason from done join lane on lane.id = done.lane where seq = ? and lease = ?"

	attemptOf     = "select " + attemptColumns + ", tenant from attempt join lane on lane.id = attempt.lane where lease = ?"
	lastAttemptOf = "select " + attemptColumns + ", tenant from done join lane on lane.id = done.lane where seq = ? and lease = ?"
)

func bindAttempt(a *args, t *rules.Attempt) {
	bindTurn(a, &t.Turn)
	a.id(t.Lease.UUID)
	bindEnd(a, t)
}

// bindEnd binds what stands behind the lease in attempt and done.
func bindEnd(a *args, t *rules.Attempt) {
	a.text(t.Worker)
	a.instant(t.GrantedAt)
	a.instant(t.FirstBeatAt)
	a.instant(t.EndedAt)
	a.text(string(t.Outcome))
	a.text(string(t.Said))
	a.text(t.Reason)
	a.text(t.Actor)
	a.text(t.Error)
	a.textOrNull(t.Taker)
}

func readAttempt(r *row) rules.Attempt {
	return rules.Attempt{
		Turn:        readTurn(r),
		Lease:       lessor.LeaseID{UUID: r.id()},
		Worker:      r.text(),
		GrantedAt:   r.instant(),
		FirstBeatAt: r.instant(),
		EndedAt:     r.instant(),
		Outcome:     rules.Outcome(r.text()),
		Said:        rules.Said(r.text()),
		Reason:      r.text(),
		Actor:       r.text(),
		Error:       r.text(),
		Taker:       r.text(),
	}
}

// lastError is what a job shows as its error after an attempt that failed: what the worker said, or else why it ended.
func lastError(outcome rules.Outcome, reason, said string) string {
	if said == "" && (outcome == rules.OutcomeFailed || outcome == rules.OutcomeExpired) {
		return reason
	}
	return said
}

// firstGrant returns when the first attempt began after which the job went on; 0 if there is none.
func (v *view) firstGrant(id lessor.JobID) (at lessor.Instant, err error) {
	err = query(v.conn, readFirstGrant, func(a *args) { a.id(id.UUID) }, func(r *row) error {
		at = r.instant()
		return nil
	})
	return at, err
}

// LeaseEnds implements scheduler.View.
func (v *view) LeaseEnds(ctx context.Context, ids []lessor.LeaseID) (map[lessor.LeaseID]scheduler.LeaseEnd, error) {
	ends := make(map[lessor.LeaseID]scheduler.LeaseEnd)
	for _, id := range ids {
		err := v.queryEnd(id, endOfDone, endOfAttempt, func(r *row) error {
			ends[id] = scheduler.LeaseEnd{
				Worker:  r.text(),
				Tenant:  lessor.TenantID{UUID: r.id()},
				Outcome: rules.Outcome(r.text()),
				Said:    rules.Said(r.text()),
				Reason:  r.text(),
			}
			return nil
		})
		if err != nil {
			return nil, readFault(ctx, "read ends of leases", err)
		}
	}
	return ends, nil
}

// queryEnd looks for the attempt that was made under a lease where a job's last one is, by the seq that the id tells, and where the
// others are.
func (v *view) queryEnd(id lessor.LeaseID, done, attempt string, visit func(*row) error) error {
	err := query(v.conn, done, func(a *args) {
		a.int(v.seal.Seq(id))
		a.id(id.UUID)
	}, visit)
	if err != nil {
		return err
	}
	return query(v.conn, attempt, func(a *args) { a.id(id.UUID) }, visit)
}

// AttemptOf implements scheduler.KernelView.
func (v *view) AttemptOf(ctx context.Context, id lessor.LeaseID) (made *rules.Attempt, tenant lessor.TenantID, err error) {
	err = v.queryEnd(id, lastAttemptOf, attemptOf, func(r *row) error {
		made, tenant = new(readAttempt(r)), lessor.TenantID{UUID: r.id()}
		return nil
	})
	return made, tenant, readFault(ctx, "read an attempt", err)
}
