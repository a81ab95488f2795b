package sqlite

import (
	"encoding/binary"
	"errors"
	"slices"

	"zombiezen.com/go/sqlite"
)

const (
	// fewLeft is the number of left-over rows that stay: they fill a few pages of the log.
	fewLeft = 4096
	// leftShare is the part of the queue that may be left over, an eighth: a page holds about 64 rows, so one write of
	// a page deletes eight.
	leftShare = 8
)

// queueRows says which rows of the table queue are queued jobs, and which were left over by grants, as the running
// transaction sees them.
//
// A grant from a long queue takes a row from its middle. To delete that row would write a page for each grant. Instead
// its seq goes into the log gone, one row per commit, and the row stays. When enough rows are left over, they are
// deleted in the order of their keys: each commit deletes as many as it grants jobs, so that grants pay for the work.
// Then the log is cut. A left-over row is no place of a job: every reader of the queue reads the log too.
type queueRows struct {
	queued seqSet
	// fresh and due are left-over rows; those of due are being deleted.
	fresh, due seqSet
	order      []int64 // the chunks of due, in order
	last, cut  int64   // the newest row of the log, and the last row to cut when due is empty
	log        []byte  // what this transaction adds to the log
	granted    int     // jobs that this transaction took from the queue
	few        int     // fewLeft, or less in a test
	undos      []queueUndo
}

// queueUndo is a seq that was put into a set, or taken out of it.
type queueUndo struct {
	set *seqSet
	seq int64
	in  bool
}

func newQueueRows() *queueRows {
	return &queueRows{queued: newSeqSet(), fresh: newSeqSet(), due: newSeqSet(), few: fewLeft}
}

func (q *queueRows) set(set *seqSet, seq int64, in bool) {
	if set.set(seq, in) {
		q.undos = append(q.undos, queueUndo{set, seq, in})
	}
}

// left reports whether the row of a seq is left over.
func (q *queueRows) left(seq int64) bool { return q.fresh.has(seq) || q.due.has(seq) }

// enqueue notes a row that is put into the queue. If the job was in the queue before, its entry in the log is
// cancelled.
func (q *queueRows) enqueue(seq int64, before bool) {
	q.set(&q.queued, seq, true)
	if before {
		q.log = binary.AppendVarint(q.log, -seq)
		q.set(&q.fresh, seq, false)
		q.set(&q.due, seq, false)
	}
}

// leave notes a row that stays although its job was granted.
func (q *queueRows) leave(seq int64) {
	q.set(&q.queued, seq, false)
	q.set(&q.fresh, seq, true)
	q.log = binary.AppendVarint(q.log, seq)
	q.granted++
}

// remove notes a row that was deleted.
func (q *queueRows) remove(seq int64) { q.set(&q.queued, seq, false) }

// limit is the number of left-over rows at which they are deleted.
func (q *queueRows) limit() int { return max(q.few, q.queued.n/leftShare) }

// slice returns the left-over rows that this transaction deletes, in order: as many as it granted, or twice as many if
// fresh has reached its limit too.
func (q *queueRows) slice() []int64 {
	n := q.granted
	if q.fresh.n >= q.limit() {
		n *= 2
	}
	var seqs []int64
	for _, key := range q.order {
		if len(seqs) >= n {
			break
		}
		seqs = q.due.appendChunk(seqs, key)
	}
	return seqs[:min(n, len(seqs))]
}

// keep ends a transaction that was committed.
func (q *queueRows) keep() {
	q.undos, q.log, q.granted = q.undos[:0], q.log[:0], 0
	for len(q.order) > 0 && q.due.chunks[q.order[0]] == nil {
		q.order = q.order[1:]
	}
	if q.due.n == 0 && q.fresh.n >= q.limit() {
		q.fresh, q.due = q.due, q.fresh
		q.order, q.cut = q.due.keys(), q.last
	}
}

// undo ends a transaction that failed.
func (q *queueRows) undo() {
	for _, u := range slices.Backward(q.undos) {
		u.set.set(u.seq, !u.in)
	}
	q.undos, q.log, q.granted = q.undos[:0], q.log[:0], 0
}

// load reads the queue and the log. Some rows of the log may have been deleted already.
func (q *queueRows) load(conn *sqlite.Conn) error {
	gone, last, err := readGone(conn)
	if err != nil {
		return err
	}
	q.last = last
	return query(conn, "select seq from queue order by seq", nil, func(r *result) error {
		seq := r.Int()
		if gone.has(seq) {
			q.fresh.set(seq, true)
		} else {
			q.queued.set(seq, true)
		}
		return nil
	})
}

var errBadLog = errors.New("the log of left-over rows cannot be read")

// readGone reads the log. It returns the left-over rows of the queue, and the number of the log's newest row.
func readGone(conn *sqlite.Conn) (left seqSet, last int64, err error) {
	left = newSeqSet()
	err = query(conn, "select n, seqs from gone order by n", nil, func(r *result) error {
		last = r.Int()
		for log := r.Bytes(); len(log) > 0; {
			seq, n := binary.Varint(log)
			if n <= 0 {
				return errBadLog
			}
			left.set(max(seq, -seq), seq > 0)
			log = log[n:]
		}
		return nil
	})
	return left, last, err
}
