package sqlite

import (
	"lessor"
	"lessor/internal/rules"
)

// doneColumns begin as those of an attempt.
const doneColumns = attemptColumns + ", state, result"

func bindDone(a *args, d *rules.Done) {
	bindTurn(a, &d.Attempt.Turn)
	a.idOrNull(d.Attempt.Lease.UUID)
	bindEnd(a, &d.Attempt)
	a.text(string(d.State))
	a.blobOrNull(d.Result)
}

func readDone(r *row) *rules.Done {
	return &rules.Done{Attempt: readAttempt(r), State: lessor.State(r.text()), Result: r.blob()}
}
