package lanes

import (
	"cmp"
	"slices"
)

// chunkMax bounds what one insertion in the middle of a line moves: 128 entries are 6 KB.
const chunkMax = 128

// smallChunk is a chunk that is cheap to move: 1.5 KB.
const smallChunk = 32

// line is the queued jobs of one lane in the order of seq: chunks of up to chunkMax entries, so that appending and
// taking the first are O(1), and everything else touches one chunk and a directory a hundredth of the line's length.
// Jobs may come in any order: a retried one has an old seq, and sequence order is not commit order.
type line struct {
	chunks []chunk // chunks[head:] are live, and none of these is empty unless the line is
	head   int
	n      int
	one    [1]chunk // most lines have one chunk: it is kept here
}

// chunk is a sorted stretch of a line: es[off:].
type chunk struct {
	es  []entry
	off int
}

func (c *chunk) live() []entry { return c.es[c.off:] }

// room makes place for one more entry at the end, if the chunk may have one.
func (c *chunk) room() bool {
	full := cap(c.es)
	switch {
	case len(c.es) < full:
	case c.off > 0 && (c.off >= full/2 || c.off >= 4 && full <= smallChunk):
		// So many entries were taken that moving the rest down pays; a small chunk is cheap to move.
		n := copy(c.es, c.live())
		c.es, c.off = c.es[:n], 0
	case full < chunkMax:
		// Slower growth than append's: most lanes are short, and a quarter of slack is what they cost.
		bigger := make([]entry, len(c.live()), min(chunkMax, full+max(2, full/4)))
		copy(bigger, c.live())
		c.es, c.off = bigger, 0
	default:
		return false
	}
	return true
}

// first is the job whose turn it is. The line must not be empty.
func (l *line) first() *entry {
	c := &l.chunks[l.head]
	return &c.es[c.off]
}

// insert puts e into its place. An entry with the same seq is replaced, and insert reports false.
func (l *line) insert(e *entry) bool {
	if l.n == 0 {
		l.start(e)
		return true
	}
	last := &l.chunks[len(l.chunks)-1]
	if e.seq > last.es[len(last.es)-1].seq {
		l.n++
		if !last.room() {
			l.chunks = append(l.chunks, chunk{es: make([]entry, 0, chunkMax)})
			last = &l.chunks[len(l.chunks)-1]
		}
		last.es = append(last.es, *e)
		return true
	}
	i, j, found := l.find(e.seq)
	c := &l.chunks[i]
	switch {
	case found:
		c.es[j] = *e
		return false
	case j == c.off && c.off > 0: // where the last one was taken: the common place of a retried job
		c.off--
		c.es[c.off] = *e
	default:
		if !c.room() {
			l.split(i)
		}
		i, j, _ = l.find(e.seq)
		c = &l.chunks[i]
		c.es = slices.Insert(c.es, j, *e)
	}
	l.n++
	return true
}

// start begins a line that is empty, with the memory of its last chunk if it still has it.
func (l *line) start(e *entry) {
	var es []entry
	if len(l.chunks) > 0 {
		es = l.chunks[l.head].es[:0]
	}
	l.one[0] = chunk{es: append(es, *e)}
	l.chunks, l.head, l.n = l.one[:], 0, 1
}

// find returns where seq is, or where to insert it; not for one that comes last. The line must not be empty.
func (l *line) find(seq int64) (i, j int, found bool) {
	live := l.chunks[l.head:]
	i, _ = slices.BinarySearchFunc(live, seq, func(c chunk, seq int64) int {
		return cmp.Compare(c.es[len(c.es)-1].seq, seq)
	})
	i = min(l.head+i, len(l.chunks)-1)
	c := &l.chunks[i]
	j, found = slices.BinarySearchFunc(c.live(), seq, func(e entry, seq int64) int { return cmp.Compare(e.seq, seq) })
	return i, c.off + j, found
}

// split makes two chunks of one that is full.
func (l *line) split(i int) {
	c := &l.chunks[i]
	live := c.live()
	mid := len(live) / 2
	upper := make([]entry, len(live)-mid, chunkMax)
	copy(upper, live[mid:])
	c.es = c.es[:c.off+mid]
	l.chunks = slices.Insert(l.chunks, i+1, chunk{es: upper})
}

// remove takes an entry out: the one that find found, or the first.
func (l *line) remove(i, j int) {
	l.n--
	c := &l.chunks[i]
	if j == c.off {
		c.off++
	} else {
		c.es = slices.Delete(c.es, j, j+1)
	}
	switch {
	case l.n == 0: // start takes it over
	case len(c.live()) > 0:
		if i > l.head {
			l.join(i)
		}
	case i == l.head:
		l.chunks[i] = chunk{}
		l.head++
		if l.head*2 > len(l.chunks) {
			l.chunks = slices.Delete(l.chunks, 0, l.head)
			l.head = 0
		}
	default:
		l.chunks = slices.Delete(l.chunks, i, i+1)
	}
}

// join makes one chunk of chunks i-1 and i when both have become small, so that cancelled jobs do not leave a line of
// nearly empty chunks.
func (l *line) join(i int) {
	a, b := l.chunks[i-1].live(), l.chunks[i].live()
	if len(a)+len(b) > chunkMax/4 {
		return
	}
	es := append(make([]entry, 0, chunkMax/2), a...)
	l.chunks[i-1] = chunk{es: append(es, b...)}
	l.chunks = slices.Delete(l.chunks, i, i+1)
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
	before := j - l.chunks[i].off
	for k := l.head; k < i; k++ {
		before += len(l.chunks[k].live())
	}
	return before + 1, true
}
