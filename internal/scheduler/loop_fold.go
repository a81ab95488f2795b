package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lessor"
	"lessor/internal/fold"
	"lessor/internal/rules"
)

// rebuild makes the fold again from the tables.
func (l *loop) rebuild(ctx context.Context) error {
	f := fold.New(l.tenantPolicy)
	err := l.store.View(ctx, func(v View) error {
		if err := l.load(ctx, v, f); err != nil {
			return err
		}
		if err := l.restoreFollowers(ctx, v); err != nil {
			return err
		}
		return l.loadSettings(ctx, v, f)
	})
	if err != nil {
		return fmt.Errorf("rebuild the fold: %w", err)
	}
	l.keys = newKnownKeys()
	l.fold, l.followedAt, l.retaining.at = f, time.Time{}, 0
	return nil
}

// load folds what one snapshot shows.
func (l *loop) load(ctx context.Context, v View, f *fold.Fold) (err error) {
	if f.Position, err = v.Position(ctx); err != nil {
		return err
	}
	noticed, err := v.NoticedLanes(ctx)
	if err != nil {
		return err
	}
	err = v.EachLane(ctx, func(id rules.LaneID, lane rules.Lane) error {
		f.AddLane(id, lane, noticed[id] != 0)
		return nil
	})
	if err != nil {
		return err
	}
	// The clock may have stepped since a node last served: the floor will move then.
	now := v.Now()
	f.NoteClock(now)
	serving := rules.Serve(v.Serving(), rules.ClockReading{}, rules.ClockReading{Wall: now})
	err = v.EachMessaged(ctx, func(id lessor.JobID, last int64) error {
		f.LoadMessages(id, last)
		return nil
	})
	if err != nil {
		return err
	}
	err = v.EachLease(ctx, func(h *rules.Held) error {
		f.Load(h, rules.ExpiryCheck(h, now, serving))
		return nil
	})
	if err != nil {
		return err
	}
	var waiting []lessor.JobID
	err = v.EachQueued(ctx, func(t rules.Turn) error {
		if l.mismatched[t.Job] > 1 {
			f.LeaveOut(t)
		} else {
			f.LoadQueued(t)
		}
		if !l.expectsOld && len(waiting) < maxExpected && unclaimed(f, t) {
			waiting = append(waiting, t.Job)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := l.expectAgain(ctx, v, waiting); err != nil {
		return err
	}
	if f.Waiting, err = v.CountWaiting(ctx); err != nil {
		return err
	}
	f.DueAt, err = v.NextDue(ctx)
	return err
}

// follow brings the fold up to date with what other nodes committed, as far as v sees it.
func (l *loop) follow(ctx context.Context, v View) error {
	if !l.store.Shared() {
		return nil
	}
	l.followedAt = l.now()
	changes, err := v.Changes(ctx, l.fold.Position)
	if err != nil || len(changes) == 0 {
		return err
	}
	named, err := l.fold.Named(changes)
	if err != nil {
		return err
	}
	if err := l.learnLanes(ctx, v, named); err != nil {
		return err
	}
	followed, err := l.fold.Follow(changes, named, v.Now())
	if err != nil {
		return err
	}
	if followed.Followers {
		l.followersUntil = l.followedAt.Add(followersFor)
	}
	l.stream.publish(followed.Events)
	if l.reload = l.reload || followed.Settings; l.reload {
		l.reload = false
		return l.loadSettings(ctx, v, l.fold)
	}
	return nil
}

// followIdle brings the fold up to date between commits, so that changes of other nodes wake parked requests, and
// submissions are checked against the current settings.
func (l *loop) followIdle(ctx context.Context) error {
	if !l.store.Shared() {
		return nil
	}
	err := l.store.View(ctx, func(v View) error { return l.follow(ctx, v) })
	if err == nil {
		return nil
	}
	l.dropFold()
	if errors.Is(err, fold.ErrStale) || errors.Is(err, ErrWentBack) {
		return l.rebuild(ctx)
	}
	return err
}

// learnLanes loads lanes that the fold does not know. Other nodes register lanes at any time, and only some of what
// they publish names them: every row that was read from the store may be of a lane that is new here. A lane that is not
// stored stays unknown, and its rows are counted nowhere.
func (l *loop) learnLanes(ctx context.Context, v View, ids []rules.LaneID) error {
	if len(ids) == 0 {
		return nil
	}
	lanes, err := v.LanesByID(ctx, ids)
	l.fold.LearnLanes(lanes)
	return err
}

// Drift compares the fold with one snapshot of the tables, between two commits. It returns nil if they are equal.
func (s *Scheduler) Drift(ctx context.Context) (drift error) {
	err := s.read(ctx, Caller{}, func(l *loop) {
		drift = l.store.View(ctx, func(v View) error {
			if err := l.follow(ctx, v); err != nil {
				l.dropFold() // part of the changes may have been applied
				return err
			}
			tables := fold.New(l.tenantPolicy)
			if err := l.load(ctx, v, tables); err != nil {
				return err
			}
			return l.fold.Differs(tables)
		})
	})
	if err != nil {
		return err
	}
	return drift
}
