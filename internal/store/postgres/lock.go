package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"lessor"
	"lessor/internal/pause"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
)

// A job's row is locked where it is. In a lease or delayed, the lock waits for the node that has the row. In the queue
// and in done, the row is locked behind the gate, where nothing may wait; there the two other places are tried again,
// in case the row moved. A transaction that has the gate already waits for no place. A cohort needs no lock, because no
// node takes a job from one without the gate.
var (
	holdLeased   = wire.SQL("select r.job from " + jobsIn("lease") + " order by j.seq for no key update of r")
	holdDelayed  = wire.SQL("select r.job from " + jobsIn("delayed") + " order by r.job for update of r")
	seizeLeased  = wire.SQL("select r.job from " + jobsIn("lease") + " for no key update of r skip locked")
	seizeDelayed = wire.SQL("select r.job from " + jobsIn("delayed") + " for update of r skip locked")
	seizeQueued  = wire.SQL("select r.job from " + jobsIn("queue") + " for update of r skip locked")
	seizeCohort  = wire.SQL("select j.id from job j where j.id = any($1::uuid[]) " +
		" and exists (select from " + cohortOf + ")")
	seizeDone = wire.SQL("select r.job from " + jobsIn("done") + " for update of r skip locked")
	knownJobs = wire.SQL("select id from job where id = any($1::uuid[])")
)

// jobsIn finds jobs in a place.
func jobsIn(place string) string {
	return place + " r join job j on " + wire.At("r.seq", "j.seq") + " and j.id = r.job where j.id = any($1::uuid[])"
}

const (
	// lockTries is how often Lock looks for a job that moves.
	lockTries = 5
	// lockTryPause is the pause before the second look; each pause is longer by as much.
	lockTryPause = 5 * time.Millisecond
)

// Lock implements scheduler.Tx. A job that exists and cannot be caught is scheduler.ErrAgain.
func (t *tx) Lock(ctx context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Standing, error) {
	standings := make(map[lessor.JobID]*rules.Standing, len(ids))
	if len(ids) == 0 || t.err != nil {
		return standings, t.err
	}
	if err := t.hold(ctx, ids); err != nil {
		return nil, err
	}
	return standings, t.locked("lock jobs", func() { t.addStandings(ids, standings) })
}

// hold locks the rows of jobs wherever they are. It pauses by this node's monotonic clock: with pg_sleep, a step of the
// database's clock would decide how long the gate is held.
func (t *tx) hold(ctx context.Context, ids []lessor.JobID) error {
	left, err := t.seek(ids, knownJobs) // those that exist
	if err != nil {
		return err
	}
	if !t.gated { // else the node that has the row may wait for the gate
		if left, err = t.catch(left, holdLeased, holdDelayed); err != nil {
			return err
		}
	}
	for try := 0; len(left) > 0; try++ {
		if try == lockTries {
			return fmt.Errorf("lock jobs: %w: job %s moves on and on", scheduler.ErrAgain, left[0])
		}
		if err := t.Gate(ctx); err != nil {
			return err
		}
		if try > 0 && !pause.For(ctx, time.Duration(try)*lockTryPause) { // another node has it for a moment
			return fmt.Errorf("lock jobs: %w", ctx.Err())
		}
		if left, err = t.catch(left, seizeQueued, seizeCohort, seizeDone, seizeLeased, seizeDelayed); err != nil {
			return err
		}
	}
	return nil
}

// catch returns the jobs that none of the statements found.
func (t *tx) catch(ids []lessor.JobID, stmts ...*wire.Statement) ([]lessor.JobID, error) {
	if len(ids) == 0 {
		return nil, t.err
	}
	found, err := t.seek(ids, stmts...)
	return slices.DeleteFunc(ids, func(id lessor.JobID) bool { return slices.Contains(found, id) }), err
}

// seek returns the jobs that the statements find.
func (t *tx) seek(ids []lessor.JobID, stmts ...*wire.Statement) (found []lessor.JobID, err error) {
	params := wire.IDs(ids)
	for _, s := range stmts {
		t.add("lock jobs", wire.Step{Stmt: s, Each: func(r *wire.Row) error {
			found = append(found, lessor.JobID{UUID: r.ID()})
			return nil
		}}, params)
	}
	return found, t.send("lock jobs")
}
