package sqlite

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// TestViewFindsLeasesThatEndMeanwhile: the index of leases is of now, and yet an open view shows a lease after the
// lease has ended, after its job was granted again, and after many other leases ended.
func TestViewFindsLeasesThatEndMeanwhile(t *testing.T) {
	s := openAt(t, Config{})
	held := leased(t, s, 6)
	specs := make([]*rules.Spec, len(held))
	for i, h := range held {
		specs[i] = &rules.Spec{ID: h.Turn.Job, Seq: h.Turn.Seq}
	}
	later := drafts(1)
	inView(t, s, func(v scheduler.View) error {
		before, err := readPlaces(t, v, specs)
		if err != nil {
			return err
		}
		update(t, s, func(tx scheduler.Tx) error {
			return errors.Join(beat(t.Context(), tx, leaseIDs(held[3:])), finish(t.Context(), tx,
				leaseIDs(held[:2]), completed),
				finish(t.Context(), tx, leaseIDs(held[2:4]), released), submit(t.Context(), tx, later))
		})
		update(t, s, func(tx scheduler.Tx) error {
			if _, err := grant(t.Context(), tx, later); err != nil {
				return err
			}
			found, err := tx.Standings(t.Context(), []lessor.JobID{held[2].Turn.Job})
			if err != nil {
				return err
			}
			turn := found[held[2].Turn.Job].Turn
			h := rules.Grant(lessor.LeaseID{UUID: uuid()}, turn, &rules.Spec{}, "w2", 1e9, tx.Now())
			return tx.Move(t.Context(), []scheduler.Move{{From: rules.InQueue, To: rules.Leased, Turn: turn, Held: h}})
		})
		for range 10 {
			other := leased(t, s, 5)
			update(t, s, func(tx scheduler.Tx) error { return finish(t.Context(), tx, leaseIDs(other), completed) })
		}
		after, err := readPlaces(t, v, specs)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("the view changed (-before +after):\n%s", diff)
		}
		if n := len(s.leases.index.ended); n < 50 {
			t.Errorf("%d ended leases are kept while an open view sees them, want all 54", n)
		}
		return err
	})
	leased(t, s, 1) // a commit after the view
	if n := len(s.leases.index.ended); n != 0 {
		t.Errorf("%d ended leases are kept that no view sees, want none", n)
	}
}

// TestJobHasOneLease: the store refuses a second lease itself, since no index of the table does.
func TestJobHasOneLease(t *testing.T) {
	s := openAt(t, Config{})
	held := leased(t, s, 1)
	for name, h := range map[string]rules.Held{
		"the same lease": *held[0], "another of its job": {ID: lessor.LeaseID{UUID: uuid()}, Turn: held[0].Turn},
	} {
		err := s.Update(t.Context(), func(tx scheduler.Tx) error {
			return tx.Move(t.Context(), []scheduler.Move{
				{From: rules.Nowhere, To: rules.Leased, Turn: h.Turn, Held: &h},
			})
		})
		if !errors.Is(err, scheduler.ErrBadCall) {
			t.Errorf("%s: %v, want ErrBadCall", name, err)
		}
	}
	runScript(t, s.path, "insert into lease select n + 1, id, job, lane, seq, attempt, max_attempts, interruptions,"+
		" fence, steps, queued_at, tenant, lock_key, units, worker, request_id, workspace_id, max_runtime_ms,"+
		" issued_at, granted_ttl_ms, taker, token, bound from lease")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if again, err := Open(t.Context(), Config{Path: s.path}); err == nil {
		_ = again.Close()
		t.Error("a database in which a job has two leases was opened, want an error")
	}
}

// TestGrantAtAnotherJobsPlaceIsRefused: a turn that names the place of another job is refused, whether its spec was
// read or not.
func TestGrantAtAnotherJobsPlaceIsRefused(t *testing.T) {
	s := openAt(t, Config{})
	specs := drafts(2)
	update(t, s, func(tx scheduler.Tx) error { return submit(t.Context(), tx, specs) })
	turns := make([]rules.Turn, 2)
	for i, spec := range specs {
		turns[i] = rules.Turn{Job: spec.ID, Lane: spec.LaneID, Seq: spec.Seq}
	}
	wrong := turns[0]
	wrong.Seq = turns[1].Seq
	for _, read := range []bool{false, true} {
		s = restarted(t, s) // which empties the cache of specs
		err := s.Update(t.Context(), func(tx scheduler.Tx) error {
			if read {
				found, err := tx.SpecsAt(t.Context(), []rules.Turn{turns[0], wrong, turns[1]})
				if err != nil || found[0] == nil || found[1] != nil || found[2] == nil {
					t.Errorf("specs %v, %v; want the first and the last", found, err)
				}
			}
			h := rules.Grant(lessor.LeaseID{UUID: uuid()}, wrong, specs[0], "w", 1e9, tx.Now())
			return tx.Move(t.Context(), []scheduler.Move{{From: rules.InQueue, To: rules.Leased, Turn: wrong, Held: h}})
		})
		if !errors.Is(err, scheduler.ErrMoved) {
			t.Errorf("specs read before: %t: %v, want ErrMoved", read, err)
		}
	}
}

// TestLeaseListIsInTheOrderOfGrants: the ids and the clock do not matter, and pages neither repeat nor lose a lease.
func TestLeaseListIsInTheOrderOfGrants(t *testing.T) {
	s := openAt(t, Config{})
	specs := drafts(7)
	update(t, s, func(tx scheduler.Tx) error { return submit(t.Context(), tx, specs) })
	var want []lessor.LeaseID
	for i, n := range []byte{5, 6, 7, 1, 2, 3, 4} {
		update(t, s, func(tx scheduler.Tx) error {
			turn := rules.Turn{Job: specs[i].ID, Lane: specs[i].LaneID, Seq: specs[i].Seq}
			h := rules.Grant(lessor.LeaseID{UUID: lessor.UUID{1, n}}, turn, specs[i], "w", 1e9, lessor.Instant(n))
			want = append(want, h.ID)
			return tx.Move(t.Context(), []scheduler.Move{{From: rules.InQueue, To: rules.Leased, Turn: turn, Held: h}})
		})
	}
	slices.Reverse(want) // newest first
	for limit := 1; limit <= 7; limit++ {
		var got []lessor.LeaseID
		inView(t, s, func(v scheduler.View) error {
			for q := (scheduler.LeaseQuery{Limit: limit}); ; {
				page, err := v.LeaseList(t.Context(), q)
				for _, l := range page {
					got = append(got, l.ID)
				}
				if err != nil || len(page) < limit || len(got) > len(want) {
					return err
				}
				q.After = &page[len(page)-1].Place
			}
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pages of %d (-want +got):\n%s", limit, diff)
		}
	}
}
