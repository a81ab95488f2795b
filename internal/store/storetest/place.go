package storetest

import (
	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// list reads a list to its end, page by page.
func (b *bed) list(v scheduler.View, q scheduler.ListQuery) []*rules.Standing {
	b.Helper()
	var all []*rules.Standing
	for {
		page, err := v.List(b.Context(), q)
		b.must(err)
		if len(page.Standings) > q.Limit {
			b.Fatalf("a page of %d holds %d", q.Limit, len(page.Standings))
		}
		all = append(all, page.Standings...)
		if page.Next == nil {
			return all
		}
		q.After = page.Next
	}
}

// onePlaceEach fails the test unless every job is in exactly one place, the same one for all ways of reading.
func (b *bed) onePlaceEach() {
	b.Helper()
	b.view(func(v scheduler.View) error {
		places := map[lessor.JobID]rules.Place{}
		for _, s := range b.list(v, scheduler.ListQuery{Limit: 50}) {
			if _, twice := places[s.Spec.ID]; twice || s.Place == rules.Nowhere {
				b.Fatalf("job %s is listed twice or is nowhere: %+v", s.Spec.ID, s)
			}
			places[s.Spec.ID] = s.Place
		}
		seen := map[lessor.JobID]lessor.State{}
		for _, state := range lessor.States() {
			for _, s := range b.list(v, scheduler.ListQuery{State: state, Limit: 50}) {
				if was, twice := seen[s.Spec.ID]; twice {
					b.Fatalf("job %s is %s and %s", s.Spec.ID, was, state)
				}
				if s.State() != state {
					b.Fatalf("job %s is listed as %s and is %s", s.Spec.ID, state, s.State())
				}
				seen[s.Spec.ID] = state
			}
		}
		if len(seen) != len(places) {
			b.Fatalf("%d jobs, of which %d are in a state", len(places), len(seen))
		}
		return b.tablesAgree(v, places)
	})
}

// tablesAgree compares the reading of whole tables with the places of all jobs.
func (b *bed) tablesAgree(v scheduler.View, places map[lessor.JobID]rules.Place) error {
	b.Helper()
	got := map[rules.Place]int{}
	check := func(id lessor.JobID, want rules.Place) error {
		if places[id] != want {
			b.Fatalf("job %s is read at place %d, and its standing says %d", id, want, places[id])
		}
		got[want]++
		return nil
	}
	if err := v.EachQueued(b.Context(), func(t rules.Turn) error { return check(t.Job, rules.InQueue) }); err != nil {
		return err
	}
	if err := v.EachLease(b.Context(), func(h *rules.Held) error {
		return check(h.Turn.Job, rules.Leased)
	}); err != nil {
		return err
	}
	waiting, err := v.CountWaiting(b.Context())
	if err != nil {
		return err
	}
	b.same("waiting jobs", waiting, len(b.list(v, scheduler.ListQuery{State: lessor.Waiting, Limit: 50})))
	want := map[rules.Place]int{}
	for _, p := range places {
		if p == rules.InQueue || p == rules.Leased {
			want[p]++
		}
	}
	b.same("rows in queue and lease", got, want)
	return nil
}
