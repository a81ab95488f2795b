package scheduler

import (
	"context"
	"fmt"
	"reflect"
)

// Drift compares the fold with one snapshot of the tables, between two commits. It returns nil if they are equal.
func (s *Scheduler) Drift(ctx context.Context) (drift error) {
	err := s.read(ctx, Caller{}, func(l *loop) {
		drift = s.store.View(ctx, func(v View) error {
			if err := l.follow(ctx, v); err != nil {
				return err
			}
			tables := l.newFold()
			if err := l.load(ctx, v, tables); err != nil {
				return err
			}
			return l.fold.differs(tables)
		})
	})
	if err != nil {
		return err
	}
	return drift
}

// differs tells what a fold holds that the tables do not.
func (f *fold) differs(tables *fold) error {
	if n := len(tables.strays); n > 0 {
		return fmt.Errorf("%d jobs have a lane that is not stored and cannot be granted, first %s", n, tables.strays[0])
	}
	if have, want := f.index.Counts(), tables.index.Counts(); !reflect.DeepEqual(have, want) {
		return fmt.Errorf("counts in memory are %+v, the tables say %+v", have, want)
	}
	if !reflect.DeepEqual(f.holders, tables.holders) {
		return fmt.Errorf("workers hold %v, the tables say %v", f.holders, tables.holders)
	}
	return nil
}
