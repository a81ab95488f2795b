package lanes

import (
	"cmp"
	"slices"
)

// runMax bounds what one insertion in the middle of a line moves: 128 entries are 6 KB.
const runMax = 128

// smallRun is a run that is cheap to move: 1.5 KB.
const smallRun = 32

// line is the queued jobs of one lane in the order of seq: runs of up to runMax entries, so that appending and taking
// the first are O(1), and everything else touches one run and a directory a hundredth of the line's length. Jobs may
// come in any order: a retried one has an old seq, and sequence order is not commit order.
type line struct {
	runs []run // runs[head:] are live, and none of these is empty unless the line is
	head int
	n    int
	one  [1]run // most lines have one run: it is kept here
}

// run is a sorted stretch of a line: es[off:].
type run struct {
	es  []entry
	off int
}

func (r *run) live() []entry { return r.es[r.off:] }

// room makes place for one more entry at the end, if the run may have one.
func (r *run) room() bool {
	full := cap(r.es)
	switch {
	case len(r.es) < full:
	case r.off > 0 && (r.off >= full/2 || r.off >= 4 && full <= smallRun):
		// So many entries were taken that moving the rest down pays; a small run is cheap to move.
		n := copy(r.es, r.live())
		r.es, r.off = r.es[:n], 0
	case full < runMax:
		// Slower growth than append's: most lanes are short, and a quarter of slack is what they cost.
		bigger := make([]entry, len(r.live()), min(runMax, full+max(2, full/4)))
		copy(bigger, r.live())
		r.es, r.off = bigger, 0
	default:
		return false
	}
	return true
}

// first is the job whose turn it is. The line must not be empty.
func (l *line) first() *entry {
	r := &l.runs[l.head]
	return &r.es[r.off]
}

// insert puts e into its place. An entry with the same seq is replaced, and insert reports false.
func (l *line) insert(e *entry) bool {
	if l.n == 0 {
		l.start(e)
		return true
	}
	last := &l.runs[len(l.runs)-1]
	if e.seq > last.es[len(last.es)-1].seq {
		l.n++
		if !last.room() {
			l.runs = append(l.runs, run{es: make([]entry, 0, runMax)})
			last = &l.runs[len(l.runs)-1]
		}
		last.es = append(last.es, *e)
		return true
	}
	i, j, found := l.find(e.seq)
	r := &l.runs[i]
	switch {
	case found:
		r.es[j] = *e
		return false
	case j == r.off && r.off > 0: // where the last one was taken: the common place of a retried job
		r.off--
		r.es[r.off] = *e
	default:
		if !r.room() {
			l.split(i)
		}
		i, j, _ = l.find(e.seq)
		r = &l.runs[i]
		r.es = slices.Insert(r.es, j, *e)
	}
	l.n++
	return true
}

// start begins a line that is empty, with the memory of its last run if it still has it.
func (l *line) start(e *entry) {
	var es []entry
	if len(l.runs) > 0 {
		es = l.runs[l.head].es[:0]
	}
	l.one[0] = run{es: append(es, *e)}
	l.runs, l.head, l.n = l.one[:], 0, 1
}

// find returns where seq is, or where to insert it; not for one that comes last. The line must not be empty.
func (l *line) find(seq int64) (i, j int, found bool) {
	live := l.runs[l.head:]
	i, _ = slices.BinarySearchFunc(live, seq, func(r run, seq int64) int {
		return cmp.Compare(r.es[len(r.es)-1].seq, seq)
	})
	i = min(l.head+i, len(l.runs)-1)
	r := &l.runs[i]
	j, found = slices.BinarySearchFunc(r.live(), seq, func(e entry, seq int64) int { return cmp.Compare(e.seq, seq) })
	return i, r.off + j, found
}

// split makes two runs of one that is full.
func (l *line) split(i int) {
	r := &l.runs[i]
	live := r.live()
	mid := len(live) / 2
	upper := make([]entry, len(live)-mid, runMax)
	copy(upper, live[mid:])
	r.es = r.es[:r.off+mid]
	l.runs = slices.Insert(l.runs, i+1, run{es: upper})
}

// remove takes an entry out: the one that find found, or the first.
func (l *line) remove(i, j int) {
	l.n--
	r := &l.runs[i]
	if j == r.off {
		r.off++
	} else {
		r.es = slices.Delete(r.es, j, j+1)
	}
	switch {
	case l.n == 0: // start takes it over
	case len(r.live()) > 0:
		if i > l.head {
			l.join(i)
		}
	case i == l.head:
		l.runs[i] = run{}
		l.head++
		if l.head*2 > len(l.runs) {
			l.runs = slices.Delete(l.runs, 0, l.head)
			l.head = 0
		}
	default:
		l.runs = slices.Delete(l.runs, i, i+1)
	}
}

// join makes one run of runs i-1 and i when both have become small, so that cancelled jobs do not leave a line of
// nearly empty runs.
func (l *line) join(i int) {
	a, b := l.runs[i-1].live(), l.runs[i].live()
	if len(a)+len(b) > runMax/4 {
		return
	}
	es := append(make([]entry, 0, runMax/2), a...)
	l.runs[i-1] = run{es: append(es, b...)}
	l.runs = slices.Delete(l.runs, i, i+1)
}

// place returns how many are before seq, plus one.
func (l *line) place(seq int64) (int, bool) {
	if l.n == 0 {
		return 0, false
	}
	i, j, found := l.find(seq)
	if !found {
		return 0, false
	}
	before := j - l.runs[i].off
	for k := l.head; k < i; k++ {
		before += len(l.runs[k].live())
	}
	return before + 1, true
}
