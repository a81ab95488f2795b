package sqlite

import (
	"context"

	"lessor/internal/rules"
	"lessor/internal/store/row"
)

const (
	addGone    = "insert into gone (n, seqs) values (?, ?)"
	cutGone    = "delete from gone where n <= +?"
	dropQueued = "delete from queue where seq between +? and +?"
)

// cleanQueue ends a transaction's work on the queue: it writes the log of what was granted, and deletes rows that
// earlier grants left over.
func (t *tx) cleanQueue() error {
	q := t.store.queueRows
	if len(q.log) > 0 {
		q.last++
		a := args{stmt: t.w.addGone}
		a.Int(q.last)
		a.Bytes(q.log)
		if err := exec(t.w.addGone); err != nil {
			return err
		}
	}
	if q.granted == 0 || q.due.n == 0 {
		return nil
	}
	if err := t.dropLeft(q.slice()); err != nil || q.due.n > 0 {
		return err
	}
	a := args{stmt: t.w.cutGone}
	a.Int(q.cut)
	return exec(t.w.cutGone)
}

// dropLeft deletes left-over rows, adjacent ones in one statement.
func (t *tx) dropLeft(seqs []int64) error {
	q := t.store.queueRows
	for len(seqs) > 0 {
		n := 1
		for n < len(seqs) && seqs[n] == seqs[n-1]+1 {
			n++
		}
		a := args{stmt: t.w.dropQueued}
		a.Int(seqs[0])
		a.Int(seqs[n-1])
		if err := exec(t.w.dropQueued); err != nil {
			return err
		}
		for _, seq := range seqs[:n] {
			q.set(&q.due, seq, false)
		}
		seqs = seqs[n:]
	}
	return nil
}

// isLeft returns a function that reports whether a row of the queue is left over in this snapshot.
func (v *view) isLeft() (func(seq int64) bool, error) {
	if v.left == nil {
		left, _, err := readGone(v.conn)
		if err != nil {
			return nil, err
		}
		v.left = left.has
	}
	return v.left, nil
}

var readQueue = "select " + row.Columns(row.Turn) + " from queue order by seq"

// EachQueued implements scheduler.View, in the order of the line.
func (v *view) EachQueued(ctx context.Context, fn func(rules.Turn) error) error {
	left, err := v.isLeft()
	if err == nil {
		err = query(v.conn, readQueue, nil, func(r *result) error {
			var t rules.Turn
			if row.Turn(r.codec, &t); !left(t.Seq) {
				return fn(t)
			}
			return nil
		})
	}
	return readFault(ctx, "read queue", err)
}
