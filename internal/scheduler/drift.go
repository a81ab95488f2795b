package scheduler

import (
	"context"
	"fmt"
	"reflect"

	"lessor/internal/lanes"
)

// Drift compares the fold with the tables, in one snapshot taken inside a transaction, so that nothing moves meanwhile. It
// returns nil if they are equal.
func (s *Scheduler) Drift(ctx context.Context) error {
	var have, want lanes.Counts
	var holders, held map[string]holding
	err := s.change(ctx, func(ctx context.Context, p *pass) error {
		f := s.newFold()
		if err := s.load(ctx, p.tx, f); err != nil {
			return err
		}
		have, want = s.fold.index.Counts(), f.index.Counts()
		holders, held = s.fold.holders, f.holders
		if !reflect.DeepEqual(holders, held) {
			return fmt.Errorf("workers hold %v, the tables say %v", holders, held)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(have, want) {
		return fmt.Errorf("counts in memory are %+v, the tables say %+v", have, want)
	}
	return nil
}
