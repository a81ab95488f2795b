package memory

import (
	"context"
	"math"
	"slices"

	"lessor"
	"lessor/internal/rules"
)

func outputKey(p rules.OutputPlace, start int64) key {
	return key{text: p.Stream, id: p.Job.UUID, n: p.Fence, m: start}
}

// outputBefore returns the last piece of a stream that starts before an offset, nil if there is none.
func (s *tables) outputBefore(at rules.OutputPlace, offset int64) *rules.OutputPiece {
	for _, p := range s.output.back(outputKey(at, offset)) {
		if p.OutputPlace != at {
			break
		}
		return &p
	}
	return nil
}

// SaveOutput implements scheduler.Tx.
func (t *tx) SaveOutput(_ context.Context, pieces []rules.OutputPiece) error {
	if len(pieces) == 0 {
		return t.err
	}
	return t.do("save output", func() error {
		for _, p := range pieces {
			short, at, most := int64(len(p.Data)) < p.Join, p.Start, p.Join
			if last := t.state.outputBefore(p.OutputPlace, math.MaxInt64); last != nil {
				if !p.Behind(last.End()) {
					continue
				}
				if p.Joins(last) {
					p.Start, p.Data = last.Start, slices.Concat(last.Data, p.Data)
				}
			}
			k := outputKey(p.OutputPlace, p.Start)
			if err := t.acquire(lock{"output", k}); err != nil {
				return err
			}
			p.Join, p.Split = 0, 0 // they are not stored
			t.write(func(s *tables) { s.output.put(k, p) })
			if short {
				t.dropScattered(p.OutputPlace, at, most)
			}
		}
		return nil
	})
}

// dropScattered removes the piece before an offset if it is short and has a gap before it and behind it.
func (t *tx) dropScattered(at rules.OutputPlace, offset, most int64) {
	last := t.state.outputBefore(at, offset)
	if last == nil || last.End() >= offset || int64(len(last.Data)) >= most {
		return
	}
	end := int64(0)
	if before := t.state.outputBefore(at, last.Start); before != nil {
		end = before.End()
	}
	if last.Start > end {
		t.write(func(s *tables) { s.output.drop(outputKey(at, last.Start)) })
	}
}

// DropOutput implements scheduler.Tx.
func (t *tx) DropOutput(_ context.Context, ranges []rules.OutputMiddle) error {
	if len(ranges) == 0 {
		return t.err
	}
	return t.do("drop output", func() error {
		for _, m := range ranges {
			for k, p := range t.state.output.from(outputKey(m.OutputPlace, m.From)) {
				if p.OutputPlace != m.OutputPlace || p.Start > m.To {
					break
				}
				if p.End() <= m.To {
					t.write(func(s *tables) { s.output.drop(k) })
				}
			}
		}
		return nil
	})
}

// Output implements scheduler.View.
func (v *view) Output(
	_ context.Context, at rules.OutputPlace, offset int64, limit int,
) (pieces []rules.OutputPiece, end int64, err error) {
	s := v.read("read output")
	if last := s.outputBefore(at, math.MaxInt64); last != nil {
		end = last.End()
	}
	start := outputKey(at, 0)
	for k, p := range s.output.back(outputKey(at, offset+1)) {
		if p.OutputPlace == at {
			start = k
		}
		break
	}
	for _, p := range s.output.from(start) {
		if p.OutputPlace != at || len(pieces) > 0 && limit <= 0 {
			break
		}
		if len(pieces) > 0 {
			limit -= len(p.Data)
		}
		pieces = append(pieces, p)
	}
	return pieces, end, v.err
}

// OutputFences implements scheduler.View.
func (v *view) OutputFences(_ context.Context, job lessor.JobID, limit int) (fences []int64, err error) {
	s := v.read("read fences of output")
	for _, stream := range []string{lessor.Stdout, lessor.Stderr} {
		for _, p := range s.output.under(stream, job.UUID) {
			fences = append(fences, p.Fence)
		}
	}
	slices.Sort(fences)
	fences = slices.Compact(fences)
	slices.Reverse(fences)
	return fences[:min(limit, len(fences))], v.err
}

// dropOutput removes what the attempts of a job printed.
func (s *tables) dropOutput(id lessor.UUID) {
	for _, stream := range []string{lessor.Stdout, lessor.Stderr} {
		for k := range s.output.under(stream, id) {
			s.output.drop(k)
		}
	}
}
