package scheduler

import (
	"context"

	"lessor"
	"lessor/internal/fold"
)

// Figures is what a scrape of the metrics shows.
type Figures struct {
	Status   lessor.Status
	Circuits map[lessor.CircuitState]int // that are not closed
	Alerts   map[lessor.AlertKind]int    // that are open, countedAlerts at most
}

// countedAlerts bounds what a scrape reads: nobody acts on the thousand and first.
const countedAlerts = 1000

// Figures counts what is open now.
func (s *Scheduler) Figures(ctx context.Context) (f Figures, err error) {
	if f.Status, err = s.Status(ctx, Caller{}); err != nil {
		return f, err
	}
	f.Circuits, f.Alerts = map[lessor.CircuitState]int{}, map[lessor.AlertKind]int{}
	err = s.read(ctx, Caller{}, func(l *loop) {
		l.fold.Blocks(func(b fold.Block) {
			if !b.Circuit.Closed() {
				f.Circuits[b.Circuit.State]++
			}
		})
	})
	if err != nil {
		return f, err
	}
	open, _, err := s.Alerts(ctx, Caller{}, lessor.AlertFilter{Open: true, Limit: countedAlerts})
	for i := range open {
		f.Alerts[open[i].Kind]++
	}
	return f, err
}
