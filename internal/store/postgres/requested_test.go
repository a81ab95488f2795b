package postgres

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// TestNewRequestIsOneRoundTrip counts the writes to the network for requests that were granted nothing before.
func TestNewRequestIsOneRoundTrip(t *testing.T) {
	s := openAt(t, Config{URL: pool.Database(t)})
	asked := 0
	ask := func(tx scheduler.Tx) error {
		asked++
		found, err := tx.Requested(t.Context(), []scheduler.RequestRef{requestNo(asked)})
		if len(found) > 0 {
			t.Errorf("a new request has the leases %v, want none", found)
		}
		return err
	}
	s.wantOneRoundTrip(t, ask)
}

// requestNo returns the n-th request of a worker.
func requestNo(n int) scheduler.RequestRef {
	return scheduler.RequestRef{Holder: rules.Holder{Worker: "w1"}, RequestID: strconv.Itoa(n)}
}

// TestRepeatedRequestIsFound repeats a request on a node that does not know of its grant. The first transaction must be
// repeated. The repeated one finds the grant, and so does every later one.
func TestRepeatedRequestIsFound(t *testing.T) {
	url := pool.Database(t)
	s := openAt(t, Config{URL: url})
	ids := leaseJobs(t, s, 1)
	readAll(t, url, "update lease set request_id = '1' returning 1", func([][]byte) {})
	next := openAt(t, Config{URL: url})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ask := func(alone bool, want error) (held []*rules.Held) {
		undisturbed(t, func() (time.Duration, error) {
			start := time.Now()
			next.alone(t, nil)
			found, err := next.repeatRequest(t, alone)
			held = found[requestNo(1)]
			if errors.Is(err, want) {
				return time.Since(start), nil
			}
			return time.Since(start), fmt.Errorf("alone %v: %v, error %w; want error %w", alone, held, err, want)
		})
		return held
	}
	ask(true, scheduler.ErrAgain) // the node does not know of the grant
	for _, alone := range []bool{false, true} {
		if held := ask(alone, nil); len(held) != 1 || held[0].ID != ids[0] {
			t.Errorf("alone %v: %v; want the lease %s", alone, held, ids[0])
		}
	}
}

// repeatRequest asks for the leases of request 1, on a node that believes it is alone or does not.
func (s *Store) repeatRequest(t *testing.T, alone bool) (found map[scheduler.RequestRef][]*rules.Held, err error) {
	t.Helper()
	ask := func(sent scheduler.Tx) (err error) {
		if alone && !sent.(*tx).guard {
			return errNotAlone
		}
		found, err = sent.Requested(t.Context(), []scheduler.RequestRef{requestNo(1)})
		return err
	}
	if !alone {
		err = s.Update(t.Context(), ask)
		return found, err
	}
	wait, err := s.Send(t.Context(), scheduler.Sole, ask)
	if err == nil {
		err = wait()
	}
	return found, err
}

// TestRequestIsKnownAsLongAsItsLease grants a request, forgets its lease, and ends it.
func TestRequestIsKnownAsLongAsItsLease(t *testing.T) {
	s := openAt(t, Config{URL: pool.Database(t)})
	ref := requestNo(1)
	var held *rules.Held
	check := func(when string, want bool) {
		t.Helper()
		if got := s.granted(ref); got != want {
			t.Errorf("%s: the request counts as granted: %v, want %v", when, got, want)
		}
	}
	ctx := t.Context()
	move := func(do func(tx scheduler.Tx) []scheduler.Move) {
		t.Helper()
		if err := s.Update(ctx, func(tx scheduler.Tx) error { return tx.Move(ctx, do(tx)) }); err != nil {
			t.Fatal(err)
		}
	}
	check("before", false)
	move(func(tx scheduler.Tx) []scheduler.Move {
		lane, first, err := laneAndSeqs(ctx, tx, 1)
		spec := &rules.Spec{ID: lessor.JobID{UUID: uuidAt(1, 1)}, LaneID: lane, Seq: first, MaxAttempts: 5}
		turn := rules.Turn{Job: spec.ID, Lane: lane, Seq: first, MaxAttempts: 5}
		held = rules.Grant(leaseOf(s, first, 1), turn, spec, ref.Worker, 1, tx.Now())
		held.RequestID = ref.RequestID
		queue := []scheduler.Move{{To: rules.InQueue, Turn: turn}}
		if err := errors.Join(err, tx.Insert(ctx, []*rules.Spec{spec}), tx.Move(ctx, queue)); err != nil {
			t.Fatal(err)
		}
		return []scheduler.Move{{From: rules.InQueue, To: rules.Leased, Turn: turn, Held: held}}
	})
	check("granted", true)
	move(func(tx scheduler.Tx) []scheduler.Move {
		found := forgottenMeanwhile(t, tx, held.ID)
		if found == nil || found.Worker != ref.Worker {
			t.Errorf("a lease that was forgotten before its row was read is %+v, want one of %s", found, ref.Worker)
		}
		return []scheduler.Move{{From: rules.Leased, To: rules.InQueue, Turn: held.Turn, Held: held}}
	})
	check("given back", false)
}

// forgottenMeanwhile locks a lease that the store forgets before the answer comes, as it does when it knows too many
// leases.
func forgottenMeanwhile(t *testing.T, at scheduler.Tx, id lessor.LeaseID) *rules.Held {
	t.Helper()
	tx := at.(*tx)
	leases := map[lessor.LeaseID]*rules.Held{}
	err := tx.locked("lock leases", func() {
		tx.addLeases([]lessor.LeaseID{id}, leases)
		tx.store.forgetLease(id)
	})
	if err != nil {
		t.Fatal(err)
	}
	return leases[id]
}
