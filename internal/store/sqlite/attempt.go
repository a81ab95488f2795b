package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

const (
	endColumns     = "lease, worker, granted_at, first_beat_at, ended_at, outcome, said, reason, actor, error"
	attemptColumns = turnColumns + ", " + endColumns

	readAttempts  = "select " + attemptColumns + " from attempt where job = ? order by fence"
	readLastError = "select outcome, reason, error, lease from attempt where job = ? and outcome in ('failed', 'expired')" +
		" order by fence desc limit 1"
	readFirstGrant = "select granted_at from attempt where job = ? order by fence limit 1"

	endOfAttempt = "select worker, tenant, outcome, said, reason from attempt join lane on lane.id = attempt.lane where lease = ?"
	endOfDone    = "select worker, tenant, outcome, said, reason from done join lane on lane.id = done.lane where lease = ?"

	attemptOf     = "select " + attemptColumns + ", tenant from attempt join lane on lane.id = attempt.lane where lease = ?"
	lastAttemptOf = "select " + attemptColumns + ", tenant from done join lane on lane.id = done.lane where lease = ?"
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
		for _, text := range []string{endOfDone, endOfAttempt} {
			err := query(v.conn, text, func(a *args) { a.id(id.UUID) }, func(r *row) error {
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
	}
	return ends, nil
}

// AttemptOf implements scheduler.KernelView.
func (v *view) AttemptOf(ctx context.Context, id lessor.LeaseID) (made *rules.Attempt, tenant lessor.TenantID, err error) {
	for _, text := range []string{lastAttemptOf, attemptOf} {
		err = query(v.conn, text, func(a *args) { a.id(id.UUID) }, func(r *row) error {
			made, tenant = new(readAttempt(r)), lessor.TenantID{UUID: r.id()}
			return nil
		})
		if made != nil || err != nil {
			break
		}
	}
	return made, tenant, readFault(ctx, "read an attempt", err)
}
