package main

import (
	"context"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// print sends a piece of what an attempt prints. Pieces may be sent twice, and bytes may be left out.
func (k *worker) print(g *heldLease) {
	l, stream := g.lease, []string{lessor.Stdout, lessor.Stderr}[k.random.IntN(2)]
	if l.printed == nil {
		l.printed = map[string]*printed{}
	}
	p := l.printed[stream]
	if p == nil {
		p = &printed{}
		l.printed[stream] = p
	}
	from, to := p.end, p.end+1+k.random.Int64N(90)
	switch {
	case k.chance(15): // it leaves some out, and often goes on with a few bytes
		if from, to = from+20, to+20; k.chance(50) {
			to = from + 1 + k.random.Int64N(6)
		}
	case len(p.tried) > len(p.acknowledged) && k.chance(80):
		from, to = p.tried[len(p.tried)-1].bounds() // which nobody may have received
	case len(p.acknowledged) > 0 && k.chance(20):
		from, to = p.acknowledged[k.random.IntN(len(p.acknowledged))].bounds()
	}
	p.tried, p.end = append(p.tried, span{from, to}), max(p.end, to)
	chunks := []lessor.OutputChunk{{Stream: &stream, Offset: &from, Data: text(l.fence, from, to)}}
	sent := k.world.now
	_, err := call(k.client, "print", func(ctx context.Context, n *node) (lessor.OutputAnswer, error) {
		return n.Print(ctx, k.caller, l.id, lessor.OutputReport{WorkerID: &k.name, Chunks: chunks})
	})
	if err == nil && !k.world.known.stale(sent) {
		p.acknowledged = append(p.acknowledged, span{from, to})
		if k.chance(20) {
			k.readOutput(l.job)
		}
	}
}

// printed is what was sent of a stream of an attempt.
type printed struct {
	end          int64
	tried        []span
	acknowledged []span
}

type span struct{ from, to int64 }

func (s span) bounds() (from, to int64) { return s.from, s.to }

func covers(all []span, at int64) bool {
	for _, s := range all {
		if s.from <= at && at < s.to {
			return true
		}
	}
	return false
}

// scattered reports whether the server may have dropped a byte: it is in a run that is shorter than what is joined and
// has a gap before it, and another short piece was sent behind a gap.
func (p *printed) scattered(at int64, keep rules.OutputKeep) bool {
	from, to, join := at, at+1, keep.Tail/16
	for from > 0 && covers(p.acknowledged, from-1) {
		from--
	}
	for covers(p.acknowledged, to) {
		to++
	}
	return from > 0 && to-from < join && slices.ContainsFunc(p.tried, func(s span) bool {
		cut := s.from < keep.Head && keep.Head < s.to // into two pieces, of which one may be short
		return s.from > to && (cut || s.to-s.from < join)
	})
}

// text is what the attempt with a fence prints, from one byte to another.
func text(fence, from, to int64) []byte {
	b := make([]byte, to-from)
	for i := range b {
		b[i] = byte(fence*31 + from + int64(i))
	}
	return b
}

// printed checks what is kept of the output under a lease: bytes that were printed, with all of the beginning and of
// the end that were acknowledged.
func (b *knowledge) printed(v scheduler.View, l *knownLease) error {
	if b.config.Retention.Jobs != 0 || b.config.Output.Tail == 0 {
		return nil
	}
	for stream, p := range l.printed {
		at := rules.OutputPlace{Job: l.job.id, Fence: l.fence, Stream: stream}
		pieces, size, err := v.Output(ctx, at, 0, 1<<20)
		if err != nil {
			return err
		}
		var there []span
		for _, piece := range pieces {
			there = append(there, span{piece.Start, piece.End()})
			if string(piece.Data) != string(text(l.fence, piece.Start, piece.End())) || !covers(p.tried, piece.Start) {
				b.fail("output", "%+v has %q at byte %d, which was never printed", at, piece.Data, piece.Start)
			}
		}
		for _, s := range p.acknowledged {
			for i := s.from; i < s.to; i++ {
				must := i < b.config.Output.Head || i >= size-b.config.Output.Tail
				if must && !covers(there, i) && !b.oldOutput(l) && !p.scattered(i, b.config.Output) {
					b.fail("output", "byte %d of %d of %+v was acknowledged and is not kept: %v", i, size, at, there)
				}
			}
		}
	}
	return nil
}

// oldOutput reports whether output under a lease may be gone because the job has had so many since.
func (b *knowledge) oldOutput(l *knownLease) bool {
	newer := 0
	for _, other := range b.leases {
		if other.job == l.job && other.fence > l.fence {
			newer++
		}
	}
	return newer >= rules.MaxOutputLeases
}

// readOutput reads what an attempt of a job printed, and then what it printed under one of the leases that the answer
// lists.
func (c *client) readOutput(j *knownJob) {
	q := lessor.OutputQuery{Offset: c.random.Int64N(200) - 50, Attempt: c.random.Int64N(3)}
	out, err := c.output(j, q)
	if err != nil || len(out.Leases) == 0 || !c.chance(50) {
		return
	}
	of, sent := out.Leases[c.random.IntN(len(out.Leases))], c.world.now
	q.Fence, q.Attempt = of.Fence, c.random.Int64N(2)*int64(of.Attempt)
	out, err = c.output(j, q)
	switch {
	case err == nil && (out.Fence != of.Fence || out.Attempt != of.Attempt):
		c.world.fail("output", "the output of job %v under %+v is of fence %d of attempt %d", j.id, of, out.Fence,
			out.Attempt)
	case lessor.CodeOf(err) == lessor.CodeLeaseNotFound && !c.world.known.stale(sent):
		c.world.fail("output", "job %v lists %+v, and then: %v", j.id, of, err)
	}
}

// output reads output, which must be what was printed.
func (c *client) output(j *knownJob, q lessor.OutputQuery) (lessor.Output, error) {
	wait := new(c.random.Int64N(2) * c.random.Int64N(1500))
	out, err := call(c, "output", func(ctx context.Context, n *node) (lessor.Output, error) {
		return n.Output(ctx, c.caller, j.id, q, wait)
	})
	if err == nil && string(out.Data) != string(text(out.Fence, out.Offset, out.NextOffset)) {
		c.world.fail("output", "job %v printed %q at %d of attempt %d, which it did not", j.id, out.Data, out.Offset,
			out.Attempt)
	}
	return out, err
}
