package postgres

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

const (
	noteColumns = "job, fence, held, at, from_state, to_state, actor, reason, lease, attempt, queued_at"
	noteTypes   = "uibittttuii"
)

var (
	insertNotes = insertAll("note", noteColumns, noteTypes)
	readNotes   = sql("select " + noteColumns + " from note where job = $1::uuid order by id")
)

// Note implements scheduler.Tx.
func (t *tx) Note(_ context.Context, notes []rules.Note) error {
	if len(notes) == 0 {
		return t.err
	}
	r := t.scratch.reset()
	for i := range notes {
		r.row()
		bindNote(r, &notes[i])
	}
	return t.write("note", step{stmt: insertNotes, rows: r})
}

func bindNote(r *rows, n *rules.Note) {
	r.id(n.Job.UUID)
	r.int(n.Fence)
	r.flag(n.Held)
	r.instant(n.At)
	r.text(string(n.From))
	r.text(string(n.To))
	r.text(n.Actor)
	r.text(n.Reason)
	r.idOrNull(n.Lease.UUID)
	r.int(int64(n.Attempt))
	r.instant(n.QueuedAt)
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
