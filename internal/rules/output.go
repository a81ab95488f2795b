package rules

import (
	"fmt"
	"math"
	"slices"

	"lessor"
)

// OutputKeep says how much is kept of each stream of an attempt.
type OutputKeep struct {
	Head int64
	Tail int64 // 0 = nothing at all
}

// OutputPlace names one stream of one attempt.
type OutputPlace struct {
	Job    lessor.JobID
	Fence  int64
	Stream string
}

// OutputPiece is a piece of output as it is stored: a row that is removed whole. It is added to the piece that ends
// where it starts, except at Split, if both together have at most Join bytes, so that a stream of small chunks has few
// rows.
type OutputPiece struct {
	OutputPlace
	Start       int64
	Data        []byte
	Join, Split int64
}

// outputJoin is the size up to which pieces are joined: a row per 4 KiB of output, and a write of at most as much. Of a
// short tail it is a sixteenth, because rows go as a whole.
const outputJoin = 4 << 10

// End is where the piece ends.
func (p *OutputPiece) End() int64 { return p.Start + int64(len(p.Data)) }

// OutputMiddle is a range of a stream that is not kept any more: the pieces that lie in it as a whole go.
type OutputMiddle struct {
	OutputPlace
	From, To int64
}

// maxOutputChunks bounds the chunks of one call: as many full ones as fit for each stream, and the rests.
const maxOutputChunks = 2*lessor.MaxOutputCall/lessor.MaxOutputChunk + 4

// OutputReport checks what a worker sends of an attempt's output.
func OutputReport(r *lessor.OutputReport) (BeatAsk, error) {
	if r.WorkerID == nil {
		return BeatAsk{}, Missing("worker_id")
	}
	var c check
	c.require("chunks", r.Chunks != nil)
	a := BeatAsk{Worker: c.text("worker_id", r.WorkerID, 1, maxWorker, ""), OutputOnly: true}
	a.Output = c.output("chunks", r.Chunks, lessor.MaxOutputCall)
	return a, c.err()
}

// output checks chunks, which together have at most limit bytes.
func (c *check) output(field string, chunks []lessor.OutputChunk, limit int) []lessor.OutputChunk {
	if len(chunks) > maxOutputChunks {
		c.fail(field, "must be at most %d, not %d", maxOutputChunks, len(chunks))
		return nil
	}
	total := 0
	for i := range chunks {
		name, k := fmt.Sprintf("%s[%d].", field, i), &chunks[i]
		c.require(name+"stream", k.Stream != nil)
		c.require(name+"offset", k.Offset != nil)
		if k.Stream != nil {
			c.stream(name+"stream", *k.Stream)
		}
		c.number(name+"offset", k.Offset, 0, math.MaxInt64-lessor.MaxOutputCall, 0)
		if len(k.Data) < 1 || len(k.Data) > lessor.MaxOutputChunk {
			c.fail(name+"data", "must be 1 to %d bytes, not %d", lessor.MaxOutputChunk, len(k.Data))
		}
		total += len(k.Data)
	}
	if total > limit {
		c.fail(field, "must be at most %d bytes, not %d", limit, total)
	}
	return chunks
}

func (c *check) stream(field, name string) {
	if name != lessor.Stdout && name != lessor.Stderr {
		c.fail(field, "must be %s or %s, not %q", lessor.Stdout, lessor.Stderr, name)
	}
}

// CheckOutputQuery checks a question for output.
func CheckOutputQuery(q lessor.OutputQuery) error {
	var c check
	c.number("attempt", &q.Attempt, 0, math.MaxInt32, 0)
	c.number("fence", &q.Fence, 0, math.MaxInt64, 0)
	c.stream("stream", q.Stream)
	return c.err()
}

// KeepOutput returns the pieces to store of chunks that the attempt under h printed, and which middles go because of
// them. No piece crosses the end of the head, so that the head stays when the middle goes.
func KeepOutput(h *Held, chunks []lessor.OutputChunk, k OutputKeep) (pieces []OutputPiece, gone []OutputMiddle) {
	if k.Tail == 0 {
		return nil, nil
	}
	join := min(outputJoin, k.Tail/16)
	for _, chunk := range chunks {
		place := OutputPlace{Job: h.Turn.Job, Fence: h.Turn.Fence, Stream: *chunk.Stream}
		start, data := *chunk.Offset, chunk.Data
		end := start + int64(len(data))
		if start < k.Head && k.Head < end {
			pieces = append(pieces, OutputPiece{place, start, data[:k.Head-start], join, k.Head})
			start, data = k.Head, data[k.Head-start:]
		}
		pieces = append(pieces, OutputPiece{place, start, data, join, k.Head})
		if end-k.Tail > k.Head {
			gone = append(gone, OutputMiddle{place, k.Head, end - k.Tail})
		}
	}
	return pieces, gone
}

// Behind cuts off what its stream has already, of which the last piece ends at an offset, and reports whether
// something is left.
func (p *OutputPiece) Behind(end int64) bool {
	if p.End() <= end {
		return false
	}
	if cut := end - p.Start; cut > 0 {
		p.Start, p.Data = end, p.Data[cut:]
	}
	return true
}

// Joins reports whether p is added to the last piece of its stream.
func (p *OutputPiece) Joins(last *OutputPiece) bool {
	return last.End() == p.Start && p.Start != p.Split && int64(len(last.Data)+len(p.Data)) <= p.Join
}

// Outputs is output that is saved at once. The pieces of a stream are in order and do not overlap.
type Outputs struct {
	Pieces []OutputPiece
	last   map[OutputPlace]int // which of Pieces is the last of its stream
}

// Add adds a piece, as far as it lies behind those of its stream.
func (o *Outputs) Add(p OutputPiece) {
	if i, has := o.last[p.OutputPlace]; has {
		last := &o.Pieces[i]
		if !p.Behind(last.End()) {
			return
		}
		if p.Joins(last) {
			last.Data = slices.Concat(last.Data, p.Data)
			return
		}
	}
	if o.last == nil {
		o.last = map[OutputPlace]int{}
	}
	o.last[p.OutputPlace] = len(o.Pieces)
	o.Pieces = append(o.Pieces, p)
}

// Concat joins pieces of a stream, in order, from an offset on, up to the first gap or limit. It returns where the data
// begins. Pieces may overlap: what was sent twice is the same both times.
func Concat(pieces []OutputPiece, offset int64, limit int) (start int64, data []byte) {
	start, data = offset, []byte{}
	for i := range pieces {
		p, next := &pieces[i], start+int64(len(data))
		switch {
		case p.End() <= next:
			continue
		case len(data) == 0:
			start = max(start, p.Start)
			next = start
		case p.Start > next || len(data) >= limit:
			return start, data
		}
		data = append(data, p.Data[next-p.Start:]...)
	}
	return start, data[:min(len(data), limit)]
}

// LeaseOf returns the lease that a question for output means; zeros if there is none yet. If several fit, because the
// attempt was given back, it is the newest. A fence that the job has not had is refused.
func LeaseOf(h *History, q lessor.OutputQuery) (of lessor.OutputLease, err error) {
	eachLease(h, func(l lessor.OutputLease) {
		if (q.Attempt == 0 || int64(l.Attempt) == q.Attempt) && (q.Fence == 0 || l.Fence == q.Fence) {
			of = l
		}
	})
	if of.Fence != q.Fence && q.Fence != 0 {
		return of, &lessor.Error{Code: lessor.CodeLeaseNotFound, Detail: "the job has had no such lease"}
	}
	return of, nil
}

// OutputLeases returns the leases with these fences, oldest first.
func OutputLeases(h *History, fences []int64) []lessor.OutputLease {
	leases := []lessor.OutputLease{}
	eachLease(h, func(l lessor.OutputLease) {
		if slices.Contains(fences, l.Fence) {
			leases = append(leases, l)
		}
	})
	return leases
}

// eachLease calls fn with every lease of a job, oldest first.
func eachLease(h *History, fn func(lessor.OutputLease)) {
	for i := range h.Attempts {
		fn(lessor.OutputLease{Attempt: h.Attempts[i].Turn.Attempt, Fence: h.Attempts[i].Turn.Fence})
	}
	if held := h.Standing.Held; held != nil {
		fn(lessor.OutputLease{Attempt: held.Turn.Attempt, Fence: held.Turn.Fence, Live: true})
	}
	if d := h.Standing.Done; d != nil && !d.Attempt.Lease.IsZero() {
		fn(lessor.OutputLease{Attempt: d.Attempt.Turn.Attempt, Fence: d.Attempt.Turn.Fence})
	}
}

// MaxOutputLeases is the number of leases of a job whose output is kept, the newest: as many as it may have attempts. A
// job that goes on after hundreds of deploys has as much output as one that fails to the end.
const MaxOutputLeases = maxAttempts

// ManyLeases reports whether a job may have had more leases than MaxOutputLeases: each is an entry of its record.
func ManyLeases(h *Held) bool { return h.Turn.Steps > MaxOutputLeases }

// OldOutput returns which output of a job goes, given the fences of what it has, newest first.
func OldOutput(job lessor.JobID, fences []int64) (gone []OutputMiddle) {
	for _, fence := range fences[min(MaxOutputLeases, len(fences)):] {
		for _, stream := range []string{lessor.Stdout, lessor.Stderr} {
			gone = append(gone, OutputMiddle{OutputPlace{job, fence, stream}, 0, math.MaxInt64})
		}
	}
	return gone
}
