package lanes

import "lessor/internal/rules"

// Enqueue puts a job that is queued and due into the line of its lane. The order of calls does not matter: a job's
// place is its seq, so one that was retried is where it was. A job that is there already is replaced. It returns false,
// and does nothing, if the lane is not known.
func (x *Index) Enqueue(t rules.Turn) bool {
	l := x.registry.find(t.Lane)
	if l == nil {
		return false
	}
	if l.line == nil {
		l.line = x.newLine()
	}
	var e entry
	e.write(&t)
	if l.line.insert(&e) {
		x.deepen(l, 1)
	}
	if pos := x.lanes.pos[l.nums[0]]; pos == absent || t.Seq < l.seats[0].lanes[pos].key {
		x.placeLane(l)
	}
	return true
}

// Remove takes a job out of the queue without granting it; false when it was not there.
func (x *Index) Remove(id rules.LaneID, seq int64) (t rules.Turn, ok bool) {
	l := x.registry.find(id)
	if ok = x.unqueue(l, seq, &t); ok {
		x.placeLane(l)
	}
	return t, ok
}

// unqueue takes a job out of its line and writes it to t. The caller places the lane.
func (x *Index) unqueue(l *lane, seq int64, t *rules.Turn) bool {
	if l == nil || l.line == nil {
		return false
	}
	i, j := l.line.head, l.line.chunks[l.line.head].off
	if l.line.first().seq != seq {
		var found bool
		if i, j, found = l.line.find(seq); !found {
			return false
		}
	}
	l.line.chunks[i].es[j].read(t, l.id)
	l.line.remove(i, j)
	x.deepen(l, -1)
	if l.line.n == 0 {
		x.dropLine(l.line)
		l.line = nil
	}
	return true
}

// deepen counts queued jobs wherever they are counted.
func (x *Index) deepen(l *lane, jobs int) {
	c := l.classShare()
	x.depth[l.shape().priority] += jobs
	c.class.queued += jobs
	c.share.tenant.queued += jobs
}

// A lane whose jobs come one by one takes its line from the spare ones and gives it back, so that it neither allocates
// for each job nor keeps memory while idle. Large ones go to the collector.
const (
	spareLines   = 256
	spareEntries = 32
)

func (x *Index) newLine() *line {
	n := len(x.spare)
	if n == 0 {
		return &line{}
	}
	l := x.spare[n-1]
	x.spare = x.spare[:n-1]
	return l
}

func (x *Index) dropLine(l *line) {
	if len(x.spare) < spareLines && cap(l.chunks[l.head].es) <= spareEntries {
		x.spare = append(x.spare, l)
	}
}
