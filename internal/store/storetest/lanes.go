package storetest

import (
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// unusedLanesAreRemoved puts lanes on notice and removes those that were not registered since. A number is not given
// again.
func unusedLanesAreRemoved(b *bed) {
	job := b.queued()
	lanes := make([]rules.Lane, 4)
	for i := range lanes {
		lanes[i] = job.Lane
		lanes[i].LockKey = []string{"kept", "registered", "gone", "last"}[i]
	}
	ids := b.lanes(lanes)
	b.notice(ids, 7)
	b.notice(ids[:1], 8) // it is under one already
	b.view(func(v scheduler.View) error {
		noticed, err := v.NoticedLanes(b.Context())
		b.same("notices", noticed, map[rules.LaneID]int64{ids[0]: 7, ids[1]: 7, ids[2]: 7, ids[3]: 7})
		return err
	})
	b.same("number of a lane on notice", b.lanes(lanes[1:2]), ids[1:2])
	b.wants(b.Update(b.Context(), func(tx scheduler.Tx) error { // what fails ends no notice
		if _, err := tx.Lanes(b.Context(), lanes[2:3]); err != nil {
			return err
		}
		return errTest
	}), errTest)
	b.reopen()
	drop := func(notices map[rules.LaneID]int64, want ...rules.LaneID) {
		b.update(func(tx scheduler.Tx) error {
			gone, err := tx.DropLanes(b.Context(), notices)
			b.same("lanes that went", slices.Sorted(slices.Values(gone)), want)
			return err
		})
	}
	drop(map[rules.LaneID]int64{ids[0]: 9, ids[1]: 7, ids[2]: 7}, ids[2])
	b.view(func(v scheduler.View) error {
		left, err := v.LanesByID(b.Context(), ids)
		b.same("lanes that are left", left, map[rules.LaneID]rules.Lane{
			ids[0]: lanes[0], ids[1]: lanes[1], ids[3]: lanes[3],
		})
		return err
	})
	again := b.lanes(lanes[2:3])
	b.notice(again, 10)
	// A store may keep the lane with the highest number, if it would give that number again.
	b.update(func(tx scheduler.Tx) error {
		_, err := tx.DropLanes(b.Context(), map[rules.LaneID]int64{again[0]: 10, 1 << 40: 10})
		return err
	})
	b.reopen()
	if third := b.lanes([]rules.Lane{{Type: "new", Units: 1}}); again[0] <= ids[3] || third[0] <= again[0] {
		b.Fatalf("lane %d went; those that were made next are %d, %d and %d", ids[2], ids[3], again[0], third[0])
	}
	b.jobLanes(job)
}

// registeredLaneLosesItsNotice reads a job whose lane is on notice, and then registers the lane.
func registeredLaneLosesItsNotice(b *bed) {
	job := b.queued()
	b.reopen()
	b.notice([]rules.LaneID{job.LaneID}, 7)
	b.update(func(tx scheduler.Tx) error {
		_, err := tx.SpecsAt(b.Context(), []rules.Turn{b.turnIn(tx, job.ID)})
		return err
	})
	b.same("number of the lane", b.lanes([]rules.Lane{job.Lane}), []rules.LaneID{job.LaneID})
	b.view(func(v scheduler.View) error {
		noticed, err := v.NoticedLanes(b.Context())
		b.same("notices", noticed, map[rules.LaneID]int64{})
		return err
	})
}

// jobLanes reads all jobs in pages of one.
func (b *bed) jobLanes(jobs ...*rules.Spec) {
	other := b.queued(func(s *rules.Spec) { s.Lane.Type = "another" })
	want := map[rules.LaneID]int{}
	for _, s := range append(jobs, other) {
		want[s.LaneID]++
	}
	got := map[rules.LaneID]int{}
	b.view(func(v scheduler.View) (err error) {
		for after := new(lessor.JobID); after != nil && err == nil; {
			after, err = v.JobLanes(b.Context(), *after, 1, func(id rules.LaneID) { got[id]++ })
		}
		return err
	})
	b.same("lanes of jobs", got, want)
}

func (b *bed) lanes(lanes []rules.Lane) (ids []rules.LaneID) {
	b.Helper()
	b.update(func(tx scheduler.Tx) (err error) {
		ids, err = tx.Lanes(b.Context(), lanes)
		return err
	})
	return ids
}

func (b *bed) notice(ids []rules.LaneID, notice int64) {
	b.Helper()
	b.update(func(tx scheduler.Tx) error { return tx.NoticeLanes(b.Context(), ids, notice) })
}
