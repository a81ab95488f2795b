package sqlite

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

const (
	noteColumns = "job, fence, held, at, from_state, to_state, actor, reason, lease, attempt, queued_at"
	readNotes   = "select " + noteColumns + " from note where job = ? order by id"
)

// Note implements scheduler.Tx.
func (t *tx) Note(_ context.Context, notes []rules.Note) error {
	return t.do("note", func() error {
		return t.w.note.insert(len(notes), func(i int, a *args) { bindNote(a, &notes[i]) })
	})
}

func bindNote(a *args, n *rules.Note) {
	a.id(n.Job.UUID)
	a.int(n.Fence)
	a.flag(n.Held)
	a.instant(n.At)
	a.text(string(n.From))
	a.text(string(n.To))
	a.text(n.Actor)
	a.text(n.Reason)
	a.idOrNull(n.Lease.UUID)
	a.int(int64(n.Attempt))
	a.instant(n.QueuedAt)
}

func readNote(r *row) rules.Note {
	return rules.Note{
		Job:      lessor.JobID{UUID: r.id()},
		Fence:    r.int(),
		Held:     r.flag(),
		At:       r.instant(),
		From:     lessor.State(r.text()),
		To:       lessor.State(r.text()),
		Actor:    r.text(),
		Reason:   r.text(),
		Lease:    lessor.LeaseID{UUID: r.id()},
		Attempt:  int(r.int()),
		QueuedAt: r.instant(),
	}
}
