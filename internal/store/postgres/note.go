package postgres

import (
	"context"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/store/postgres/wire"
)

const (
	noteColumns = "job, fence, held, at, from_state, to_state, actor, reason, lease, attempt, queued_at"
	noteTypes   = "uibittttuii"
)

var (
	insertNotes = wire.InsertAll("note", noteColumns, noteTypes)
	readNotes   = wire.SQL("select " + noteColumns + " from note where job = $1::uuid order by id")
)

// Note implements scheduler.Tx.
func (t *tx) Note(_ context.Context, notes []rules.Note) error {
	if len(notes) == 0 {
		return t.err
	}
	r := t.scratch.Reset()
	for i := range notes {
		r.Next()
		bindNote(r, &notes[i])
	}
	return t.write("note", wire.Step{Stmt: insertNotes, Rows: r})
}

func bindNote(r *wire.Rows, n *rules.Note) {
	r.ID(n.Job.UUID)
	r.Int(n.Fence)
	r.Flag(n.Held)
	r.Instant(n.At)
	r.Text(string(n.From))
	r.Text(string(n.To))
	r.Text(n.Actor)
	r.Text(n.Reason)
	r.IDOrNull(n.Lease.UUID)
	r.Int(int64(n.Attempt))
	r.Instant(n.QueuedAt)
}

func readNote(r *wire.Row) rules.Note {
	return rules.Note{
		Job:      lessor.JobID{UUID: r.ID()},
		Fence:    r.Int(),
		Held:     r.Flag(),
		At:       r.Instant(),
		From:     lessor.State(r.Text()),
		To:       lessor.State(r.Text()),
		Actor:    r.Text(),
		Reason:   r.Text(),
		Lease:    lessor.LeaseID{UUID: r.ID()},
		Attempt:  int(r.Int()),
		QueuedAt: r.Instant(),
	}
}
