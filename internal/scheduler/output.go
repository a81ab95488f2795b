package scheduler

import (
	"context"
	"slices"

	"lessor"
	"lessor/internal/rules"
)

// Print stores a part of the output of the attempt under a lease. It does not extend the lease.
func (s *Scheduler) Print(
	ctx context.Context, c Caller, id lessor.LeaseID, r lessor.OutputReport,
) (lessor.OutputAnswer, error) {
	ask, err := rules.OutputReport(&r)
	if err == nil {
		_, err = s.beatOne(ctx, c, beat{id: id, ask: ask})
	}
	if err != nil {
		return lessor.OutputAnswer{}, err
	}
	return lessor.OutputAnswer{OK: true, HeadBytes: s.cfg.Output.Head, TailBytes: s.cfg.Output.Tail}, nil
}

// output collects what attempts print in one pass.
type output struct {
	rules.Outputs
	gone []rules.OutputMiddle
	many []lessor.JobID // they may have output of more leases than are kept
}

// print records output of the attempt under h. A repeated call may be in the same pass as its first try.
func (p *pass) print(h *rules.Held, chunks []lessor.OutputChunk) {
	pieces, gone := rules.KeepOutput(h, chunks, p.l.cfg.Output)
	if len(pieces) == 0 {
		return
	}
	for _, piece := range pieces {
		p.output.Add(piece)
	}
	p.output.gone = append(p.output.gone, gone...)
	if rules.ManyLeases(h) && !slices.Contains(p.output.many, h.Turn.Job) {
		p.output.many = append(p.output.many, h.Turn.Job)
	}
	p.toWake = append(p.toWake, h.Turn.Job)
}

// saveOutput writes what was printed in this pass.
func (p *pass) saveOutput(ctx context.Context) error {
	if len(p.output.Pieces) == 0 {
		return nil
	}
	if err := p.tx.SaveOutput(ctx, p.output.Pieces); err != nil {
		return err
	}
	for _, job := range p.output.many {
		fences, err := p.tx.OutputFences(ctx, job, rules.MaxOutputLeases+oldLeases)
		if err != nil {
			return err
		}
		p.output.gone = append(p.output.gone, rules.OldOutput(job, fences)...)
	}
	return p.tx.DropOutput(ctx, p.output.gone)
}

// oldLeases bounds the leases whose output goes when a job prints: one, unless an older release kept all.
const oldLeases = 10

// maxOutputRead bounds the output of one answer in bytes.
const maxOutputRead = 256 << 10

// Output returns a piece of what an attempt printed, as soon as there is some behind the offset, on whichever node it
// arrived; without data if the attempt is over or the wait is.
func (s *Scheduler) Output(
	ctx context.Context, c Caller, id lessor.JobID, q lessor.OutputQuery, waitMS *int64,
) (lessor.Output, error) {
	if q.Stream == "" {
		q.Stream = lessor.Stdout
	}
	wait, err := rules.HoldFor(waitMS)
	if err == nil {
		err = rules.CheckOutputQuery(q)
	}
	if err != nil {
		return lessor.Output{}, err
	}
	return poll(ctx, s, id, wait, func() (out lessor.Output, there bool, err error) {
		err = s.view(ctx, "load output", func(v View) (err error) {
			out, there, err = readOutput(ctx, v, c, id, q)
			return err
		})
		return out, there, err
	})
}

// readOutput reads the output behind the offset, and reports whether the caller need not wait: there is some, or the
// attempt is over and the caller asks for no other.
func readOutput(
	ctx context.Context, v View, c Caller, id lessor.JobID, q lessor.OutputQuery,
) (out lessor.Output, there bool, err error) {
	all, err := v.Histories(ctx, []lessor.JobID{id})
	if err != nil {
		return out, false, err
	}
	h := all[id]
	if h == nil || !c.sees(h.Standing.Spec.Lane.Tenant) {
		return out, false, lessor.ErrJobNotFound
	}
	of, err := rules.LeaseOf(h, q)
	if err != nil {
		return out, false, err
	}
	fences, err := v.OutputFences(ctx, id, rules.MaxOutputLeases)
	if err != nil {
		return out, false, err
	}
	out = lessor.Output{
		JobID: id, Attempt: of.Attempt, Fence: of.Fence, Stream: q.Stream, Data: []byte{},
		Leases: rules.OutputLeases(h, fences),
	}
	if of.Fence == 0 { // the attempt has not begun
		out.Ended = h.Standing.Place == rules.Ended
		return out, out.Ended, nil
	}
	at := rules.OutputPlace{Job: id, Fence: of.Fence, Stream: q.Stream}
	offset := q.Offset
	if offset < 0 {
		if _, out.Size, err = v.Output(ctx, at, 0, 0); err != nil {
			return out, false, err
		}
		offset = max(0, out.Size+offset)
	}
	pieces, size, err := v.Output(ctx, at, offset, maxOutputRead)
	if err != nil {
		return out, false, err
	}
	out.Size = size
	out.Offset, out.Data = rules.Concat(pieces, offset, maxOutputRead)
	out.NextOffset = out.Offset + int64(len(out.Data))
	out.Ended = !of.Live && out.NextOffset >= size
	return out, len(out.Data) > 0 || out.Ended, nil
}
