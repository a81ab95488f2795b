package scheduler

import (
	"context"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// A lane is removed when no job refers to it. Every lock key and every type has lanes of its own, so without removal
// their number would only grow.
//
// A goroutine beside the loop finds the lanes without jobs: every laneEvery it reads all jobs, page by page. Nodes keep
// lane numbers in memory and store jobs under them without reading the table, so a lane is removed in two scans. The
// first scan puts it on notice: every node forgets its number, this node in the commit and the others when they follow
// it. A node that needs the lane registers it again, which ends the notice. If the second scan, laneEvery later, finds
// the lane under the same notice and still without a job, it removes the lane. By then, every job that a node stored
// under a number from before the notice is committed, so the scan finds it: a node follows the others several times a
// second, its transactions last seconds, and a node that stood still for more than a minute has lost its stream, so
// that its commits fail and it reads the lanes again. Numbers are never reused.
const (
	laneEvery = time.Hour
	scanPage  = 5000
	lanePage  = 500
)

// idleLanes are lanes that no job refers to.
type idleLanes struct {
	notice []rules.LaneID // to be put on notice
	gone   []rules.LaneID // to be removed
	under  map[rules.LaneID]int64
}

func (i *idleLanes) empty() bool { return len(i.notice)+len(i.gone) == 0 }

// scanLoop finds lanes that no job refers to, and leaves them to retention.
func (s *Scheduler) scanLoop(ctx context.Context) {
	if s.cfg.Retention.Audit == 0 {
		return // no job ever goes
	}
	t := time.NewTicker(s.pace.Lanes)
	defer t.Stop()
	var before map[rules.LaneID]int64
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		found, err := s.scanLanes(ctx, before)
		if err != nil {
			continue // other calls report the fault of the store; the next scan tries again
		}
		before = found.under
		select {
		case <-ctx.Done():
			return
		case s.idleLanes <- found:
		}
	}
}

// scanLanes reads which lanes jobs refer to. before is what was on notice at the last look.
func (s *Scheduler) scanLanes(ctx context.Context, before map[rules.LaneID]int64) (*idleLanes, error) {
	found := &idleLanes{}
	var all []rules.LaneID
	err := s.store.View(ctx, func(v View) (err error) {
		if found.under, err = v.NoticedLanes(ctx); err != nil {
			return err
		}
		return v.EachLane(ctx, func(id rules.LaneID, _ rules.Lane) error {
			all = append(all, id)
			return nil
		})
	})
	used := map[rules.LaneID]bool{}
	for after := new(lessor.JobID); err == nil && after != nil; {
		err = s.store.View(ctx, func(v View) (err error) {
			after, err = v.JobLanes(ctx, *after, scanPage, func(id rules.LaneID) { used[id] = true })
			return err
		})
	}
	found.notice, found.gone = rules.LanesToGo(all, used, found.under, before)
	return found, err
}

// sweepLanes removes a page of lanes that no job refers to, and puts one on notice. It reports whether there are more.
func (l *loop) sweepLanes(ctx context.Context) (bool, error) {
	r := &l.retaining
	if r.idle.empty() {
		select {
		case found := <-l.idleLanes:
			r.idle = *found
		default:
		}
	}
	if r.idle.empty() {
		return false, nil
	}
	notice, gone := firstOf(&r.idle.notice, lanePage), firstOf(&r.idle.gone, lanePage)
	under := make(map[rules.LaneID]int64, len(gone))
	for _, id := range gone {
		under[id] = r.idle.under[id]
	}
	_, err := l.transact(ctx, 0, func(p *pass) error {
		if err := p.tx.NoticeLanes(ctx, notice, l.machine.number()); err != nil {
			return err
		}
		for _, id := range notice {
			l.fold.NoticeLane(id)
		}
		gone, err := p.tx.DropLanes(ctx, under)
		for _, id := range gone {
			l.fold.DropLane(id)
		}
		return err
	})
	return !r.idle.empty(), err
}

// firstOf takes up to n from a list.
func firstOf[T any](list *[]T, n int) []T {
	first := (*list)[:min(n, len(*list))]
	*list = (*list)[len(first):]
	return first
}
