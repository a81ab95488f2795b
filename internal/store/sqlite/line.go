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

// line says which rows of the table queue are queued jobs, and which were left over by grants, as the running
// transaction sees them.
//
// A grant from a long queue takes a row from its middle. To delete that row would write a page for each grant. Instead
// its seq goes into the log gone, one row per commit, and the row stays. When enough rows are left over, they are
// deleted in the order of their keys: each commit deletes as many as it grants jobs, so that grants pay for the work.
// Then the log is cut. A left-over row is no place of a job: every reader of the queue reads the log too.
type line struct {
	queued seqSet
	// fresh and due are left-over rows; those of due are being deleted.
	fresh, due seqSet
	order      []int64 // the chunks of due, in order
	last, cut  int64   // the newest row of the log, and the last row to cut when due is empty
	log        []byte  // what this transaction adds to the log
	granted    int     // jobs that this transaction took from the queue
	few        int     // fewLeft, or less in a test
	undos      []lineUndo
}

// lineUndo is a seq that was put into a set, or taken out of it.
type lineUndo struct {
	set *seqSet
	seq int64
	in  bool
}

func newLine() *line {
	return &line{queued: newSeqSet(), fresh: newSeqSet(), due: newSeqSet(), few: fewLeft}
}

func (l *line) set(set *seqSet, seq int64, in bool) {
	if set.set(seq, in) {
		l.undos = append(l.undos, lineUndo{set, seq, in})
	}
}

// left reports whether the row of a seq is left over.
func (l *line) left(seq int64) bool { return l.fresh.has(seq) || l.due.has(seq) }

// enqueue notes a row that is put into the queue. If the job was in the queue before, its entry in the log is
// cancelled.
func (l *line) enqueue(seq int64, before bool) {
	l.set(&l.queued, seq, true)
	if before {
		l.log = binary.AppendVarint(l.log, -seq)
		l.set(&l.fresh, seq, false)
		l.set(&l.due, seq, false)
	}
}

// leave notes a row that stays although its job was granted.
func (l *line) leave(seq int64) {
	l.set(&l.queued, seq, false)
	l.set(&l.fresh, seq, true)
	l.log = binary.AppendVarint(l.log, seq)
	l.granted++
}

// remove notes a row that was deleted.
func (l *line) remove(seq int64) { l.set(&l.queued, seq, false) }

// limit is the number of left-over rows at which they are deleted.
func (l *line) limit() int { return max(l.few, l.queued.n/leftShare) }

// slice returns the left-over rows that this transaction deletes, in order: as many as it granted, or twice as many if
// fresh has reached its limit too.
func (l *line) slice() []int64 {
	n := l.granted
	if l.fresh.n >= l.limit() {
		n *= 2
	}
	var seqs []int64
	for _, key := range l.order {
		if len(seqs) >= n {
			break
		}
		seqs = l.due.appendChunk(seqs, key)
	}
	return seqs[:min(n, len(seqs))]
}

// keep ends a transaction that was committed.
func (l *line) keep() {
	l.undos, l.log, l.granted = l.undos[:0], l.log[:0], 0
	for len(l.order) > 0 && l.due.chunks[l.order[0]] == nil {
		l.order = l.order[1:]
	}
	if l.due.n == 0 && l.fresh.n >= l.limit() {
		l.fresh, l.due = l.due, l.fresh
		l.order, l.cut = l.due.keys(), l.last
	}
}

// undo ends a transaction that failed.
func (l *line) undo() {
	for _, u := range slices.Backward(l.undos) {
		u.set.set(u.seq, !u.in)
	}
	l.undos, l.log, l.granted = l.undos[:0], l.log[:0], 0
}

// load reads the queue and the log. Some rows of the log may have been deleted already.
func (l *line) load(conn *sqlite.Conn) error {
	gone, last, err := readGone(conn)
	if err != nil {
		return err
	}
	l.last = last
	return query(conn, "select seq from queue order by seq", nil, func(r *result) error {
		seq := r.Int()
		if gone.has(seq) {
			l.fresh.set(seq, true)
		} else {
			l.queued.set(seq, true)
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
