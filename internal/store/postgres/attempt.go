package postgres

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

const (
	attemptColumns = turnColumns + ", lease, worker, granted_at, first_beat_at, ended_at, outcome, said, reason, actor, error, taker"
	attemptTypes   = turnTypes + "utiiitttttt"
)

var (
	readAttempts  = wire.SQL("select " + attemptColumns + " from attempt where job = $1::uuid order by fence")
	readLeaseEnds = wire.SQL("select lease, worker, lane.tenant, outcome, said, reason from done join lane on lane.id = done.lane" +
		" where done.seq = any($1::bigint[]) and lease = any($2::uuid[])" +
		" union all select lease, worker, lane.tenant, outcome, said, reason from attempt join lane on lane.id = attempt.lane" +
		" where lease = any($2::uuid[])")
)

func bindAttempt(r *wire.Rows, a *rules.Attempt) {
	bindTurn(r, &a.Turn)
	r.ID(a.Lease.UUID)
	bindEnd(r, a)
}

// bindEnd binds what stands behind the lease in attempt and done.
func bindEnd(r *wire.Rows, a *rules.Attempt) {
	r.Text(a.Worker)
	r.Instant(a.GrantedAt)
	r.Instant(a.FirstBeatAt)
	r.Instant(a.EndedAt)
	r.Text(string(a.Outcome))
	r.Text(string(a.Said))
	r.Text(a.Reason)
	r.Text(a.Actor)
	r.Text(a.Error)
	r.TextOrNull(a.Taker)
}

func readAttempt(r *wire.Row) rules.Attempt {
	return rules.Attempt{
		Turn:        readTurn(r),
		Lease:       lessor.LeaseID{UUID: r.ID()},
		Worker:      r.Text(),
		GrantedAt:   r.Instant(),
		FirstBeatAt: r.Instant(),
		EndedAt:     r.Instant(),
		Outcome:     rules.Outcome(r.Text()),
		Said:        rules.Said(r.Text()),
		Reason:      r.Text(),
		Actor:       r.Text(),
		Error:       r.Text(),
		Taker:       r.Text(),
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
	err := v.query("read ends of leases", readLeaseEnds, func(r *wire.Row) error {
		id := lessor.LeaseID{UUID: r.ID()}
		ends[id] = scheduler.LeaseEnd{
			Worker:  r.Text(),
			Tenant:  lessor.TenantID{UUID: r.ID()},
			Outcome: rules.Outcome(r.Text()),
			Said:    rules.Said(r.Text()),
			Reason:  r.Text(),
		}
		return nil
	}, v.leaseKeys(ids)...)
	return ends, err
}
