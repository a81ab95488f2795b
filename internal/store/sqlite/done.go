package sqlite

import (
	"lessor"
	"lessor/internal/rules"
)

// doneColumns begin as those of an attempt.
const doneColumns = attemptColumns + ", state, result, started_at"

func bindDone(a *args, d *rules.Done, startedAt lessor.Instant) {
	bindTurn(a, &d.Attempt.Turn)
	a.idOrNull(d.Attempt.Lease.UUID)
	bindEnd(a, &d.Attempt)
	a.text(string(d.State))
	a.blobOrNull(d.Result)
	a.instant(startedAt)
}

func readDone(r *row) (d *rules.Done, startedAt lessor.Instant) {
	d = &rules.Done{Attempt: readAttempt(r), State: lessor.State(r.text()), Result: r.blob()}
	return d, r.instant()
}

// twoGrants is the shortest record of a job that was granted twice: submitted, granted, ended, granted, ended.
const twoGrants = 5

// startedAt returns when a job that ends was first granted. Nearly all are granted once, and nothing is read for them.
func (t *tx) startedAt(end *rules.Attempt) (lessor.Instant, error) {
	if end.Turn.Fence == 0 || end.Turn.Steps < twoGrants && !end.Lease.IsZero() {
		return end.GrantedAt, nil
	}
	at, err := t.firstGrant(end.Turn.Job)
	if at == 0 {
		at = end.GrantedAt
	}
	return at, err
}
