package scheduler_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lessor"
	"lessor/internal/scheduler"
)

// TestStreamShowsRecordsOfAllNodes follows the records on one node while a job lives on two others.
func TestStreamShowsRecordsOfAllNodes(t *testing.T) {
	ws := nodes(t, 3, config(), nil)
	for _, w := range ws { // all know of each other
		w.submit(nil)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	stream, err := ws[0].Subscribe(ctx, anybody, 0)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := ws[0].Subscribe(ctx, scheduler.Caller{Actor: "b", Tenant: &tenantB}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range ws[1:] { // each knows of the follower when its first record arrives
		w.eventually("followed", func() bool {
			first := w.submit(nil)
			for {
				for _, e := range stream.Take(math.MaxInt) {
					if e.Event.JobID == first.ID {
						return true
					}
				}
				select {
				case <-stream.Arrived():
				case <-time.After(500 * time.Millisecond):
					return false
				}
			}
		})
	}
	job := ws[1].submit(func(s *lessor.Submission) { s.Type = new("followed") })
	g := ws[2].lease("worker-1", func(r *lessor.LeaseRequest) {
		r.Types, r.WaitMS = []string{"followed"}, new(int64(5000))
	})
	ws[1].mustBeat(g)
	ws[2].mustComplete(g, "completed")
	var states []lessor.State
	for len(states) < 4 {
		for _, e := range stream.Take(math.MaxInt) {
			if e.Gap {
				t.Error("a gap, and nothing was left out")
			}
			if e.Event.JobID == job.ID {
				if e.Event.TraceID != job.TraceID || e.Event.TenantID != job.TenantID {
					t.Errorf("the event %+v is not of %+v", e.Event, job)
				}
				states = append(states, e.Event.To)
			}
		}
		select {
		case <-stream.Arrived():
		case <-time.After(60 * time.Second):
			t.Fatalf("no further event in a minute: %v", states)
		}
	}
	if d := cmp.Diff([]lessor.State{lessor.Queued, lessor.Leased, lessor.Running, lessor.Completed}, states); d != "" {
		t.Errorf("states of the job (-want +got):\n%s", d)
	}
	if got := foreign.Take(math.MaxInt); len(got) > 0 {
		t.Errorf("a tenant gets events of another's jobs: %+v", got)
	}
	for _, w := range ws {
		w.noDrift()
	}
}

// TestReaderOfRecordsIsToldOfAFailedStart: the database cannot be reached when the first reader comes. The second one
// gets the records of other nodes at once, and the first learns that it has missed some.
func TestReaderOfRecordsIsToldOfAFailedStart(t *testing.T) {
	url := pool.Database(t)
	var f *faulty
	here := node(t, url, config(), func(s scheduler.Store) scheduler.Store {
		f = &faulty{Store: s}
		return f
	})
	there := node(t, url, config(), nil)
	for _, w := range []*world{here, there} { // both know of each other
		w.submit(nil)
	}
	f.fail.Store(&scheduler.ErrUnreachable)
	first, err := here.Subscribe(t.Context(), anybody, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.fail.Store(nil)
	if _, err := here.Subscribe(t.Context(), anybody, 0); err != nil {
		t.Fatal(err)
	}
	if got := first.Take(1); len(got) != 1 || !got[0].Gap {
		t.Errorf("the first reader gets %+v, want a gap", got)
	}
	submitted := map[lessor.JobID]bool{}
	there.eventually("followed", func() bool {
		submitted[there.submit(nil).ID] = true
		select {
		case <-first.Arrived():
		case <-time.After(500 * time.Millisecond):
			return false
		}
		got := first.Take(math.MaxInt) // perhaps of a job before, if the machine is slow
		return len(got) > 0 && submitted[got[0].Event.JobID]
	})
}
