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

// outputEnd returns the last piece of a stream, nil if there is none.
func (s *tables) outputEnd(at rules.OutputPlace) *rules.OutputPiece {
	for _, p := range s.output.back(outputKey(at, math.MaxInt64)) {
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
			last := t.state.outputEnd(p.OutputPlace)
			if last != nil && last.End() == p.Start && int64(len(last.Data)+len(p.Data)) <= p.Join {
				p.Start, p.Data = last.Start, slices.Concat(last.Data, p.Data)
			}
			k := outputKey(p.OutputPlace, p.Start)
			if err := t.acquire(lock{"output", k}); err != nil {
				return err
			}
			p.Join = 0 // it is not stored
			was, _ := t.state.output.get(k)
			if (last == nil || last.End() < p.End()) && len(p.Data) > len(was.Data) {
				t.write(func(s *tables) { s.output.put(k, p) })
			}
		}
		return nil
	})
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
	if last := s.outputEnd(at); last != nil {
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

// dropOutput removes what the attempts of a job printed.
func (s *tables) dropOutput(id lessor.UUID) {
	for _, stream := range []string{lessor.Stdout, lessor.Stderr} {
		for k := range s.output.under(stream, id) {
			s.output.drop(k)
		}
	}
}
