package postgres

import (
	"lessor"
	"lessor/internal/rules"
)

// doneColumns begin as those of an attempt.
const (
	doneColumns = attemptColumns + ", state, result"
	doneTypes   = attemptTypes + "ty"
)

func bindDone(r *rows, d *rules.Done) {
	bindTurn(r, &d.Attempt.Turn)
	r.idOrNull(d.Attempt.Lease.UUID)
	bindEnd(r, &d.Attempt)
	r.text(string(d.State))
	r.bytesOrNull(d.Result)
}

func readDone(r *row) *rules.Done {
	return &rules.Done{Attempt: readAttempt(r), State: lessor.State(r.text()), Result: r.bytes()}
}
