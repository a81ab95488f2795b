package postgres

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

const (
	attemptColumns = turnColumns + ", lease, worker, granted_at, first_beat_at, ended_at, outcome, said, reason, actor, error, taker"
	attemptTypes   = turnTypes + "utiiitttttt"
)

var (
	readAttempts  = sql("select " + attemptColumns + " from attempt where job = $1::uuid order by fence")
	readLeaseEnds = sql("select lease, worker, lane.tenant, outcome, said, reason from done join lane on lane.id = done.lane" +
		" where done.seq = any($1::bigint[]) and lease = any($2::uuid[])" +
		" union all select lease, worker, lane.tenant, outcome, said, reason from attempt join lane on lane.id = attempt.lane" +
		" where lease = any($2::uuid[])")
)

func bindAttempt(r *rows, a *rules.Attempt) {
	bindTurn(r, &a.Turn)
	r.id(a.Lease.UUID)
	bindEnd(r, a)
}

// bindEnd binds what stands behind the lease in attempt and done.
func bindEnd(r *rows, a *rules.Attempt) {
	r.text(a.Worker)
	r.instant(a.GrantedAt)
	r.instant(a.FirstBeatAt)
	r.instant(a.EndedAt)
	r.text(string(a.Outcome))
	r.text(string(a.Said))
	r.text(a.Reason)
	r.text(a.Actor)
	r.text(a.Error)
	r.textOrNull(a.Taker)
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

// LeaseEnds implements scheduler.View.
func (v *view) LeaseEnds(_ context.Context, ids []lessor.LeaseID) (map[lessor.LeaseID]scheduler.LeaseEnd, error) {
	ends := make(map[lessor.LeaseID]scheduler.LeaseEnd)
	if len(ids) == 0 || v.err != nil {
		return ends, v.err
	}
	err := v.query("read ends of leases", readLeaseEnds, func(r *row) error {
		id := lessor.LeaseID{UUID: r.id()}
		ends[id] = scheduler.LeaseEnd{
			Worker:  r.text(),
			Tenant:  lessor.TenantID{UUID: r.id()},
			Outcome: rules.Outcome(r.text()),
			Said:    rules.Said(r.text()),
			Reason:  r.text(),
		}
		return nil
	}, v.leaseKeys(ids)...)
	return ends, err
}
