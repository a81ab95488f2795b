package storetest

import (
	"fmt"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// runsInEveryState stores jobs in every standing, of two tenants, some of definitions. It returns them oldest first.
func (b *bed) runsInEveryState() []*rules.Standing {
	b.Helper()
	ends := func(es ...rules.End) func(*rules.Spec) {
		return func(s *rules.Spec) {
			for i, e := range es {
				if i > 0 && b.standing(s.ID).Place == rules.Delayed {
					b.promote(s.ID)
				}
				b.end(b.grant(s, "w1"), e)
			}
		}
	}
	type change = func(*rules.Standing, lessor.Instant) (rules.Change, error)
	then := func(first func(*rules.Spec), wish change) func(*rules.Spec) {
		return func(s *rules.Spec) {
			first(s)
			b.change(s.ID, wish)
		}
	}
	lives := []func(*rules.Spec){
		ends(), ends(released), ends(failed), ends(expired), ends(completed), ends(failed, completed), ends(fatal),
		ends(released, fatal),
		then(ends(), cancel), then(ends(failed), cancel), then(ends(failed, fatal), retry),
		then(then(ends(), cancel), retry),
		func(s *rules.Spec) { b.grant(s, "w1") },
		func(s *rules.Spec) { b.firstBeat(b.grant(s, "w1")) },
		func(s *rules.Spec) {
			ends(released)(s)
			b.firstBeat(b.grant(s, "w2"))
		},
		then(func(s *rules.Spec) { b.grant(s, "w1") }, cancel),
	}
	var ids []lessor.JobID
	for i := range 6 * len(lives) {
		s := b.queued(func(s *rules.Spec) {
			group := i / len(lives)
			s.Lane.Tenant, s.Lane.Definition = tenant(byte(group%2)), []string{"", "nightly", "hourly"}[group%3]
			s.TraceID = fmt.Sprintf("%x", s.ID.UUID[:])
		})
		ids = append(ids, s.ID)
		lives[i%len(lives)](s)
	}
	ids = append(ids, b.queued(later).ID)
	var all []*rules.Standing
	for _, id := range ids {
		all = append(all, b.standing(id))
	}
	return all
}

// firstBeat gives a lease its first heartbeat.
func (b *bed) firstBeat(h *rules.Held) {
	b.Helper()
	b.update(func(tx scheduler.Tx) error {
		h.FirstBeatAt = tx.Now()
		return tx.SaveLeases(b.Context(), []*rules.Held{h})
	})
}

// runMatches reports, by rules.RunOf, whether a list of runs must contain a job.
func runMatches(s *rules.Standing, q scheduler.ListQuery) bool {
	run, _ := rules.RunOf(s)
	claimed := run.StartedAt != 0
	return matches(s, q) && (!q.Claimed || claimed) &&
		(q.Status == "" || run.Status == q.Status && claimed != (q.Status == lessor.RunQueued)) &&
		(q.Definition == "" || s.Spec.Lane.Definition == q.Definition) && (q.Trace == "" || s.Spec.TraceID == q.Trace)
}

// statuses are those by which a store can filter.
func statuses() []lessor.RunStatus {
	return append(slices.DeleteFunc(lessor.RunStatuses(), func(s lessor.RunStatus) bool {
		return s == lessor.RunCircuitOpen
	}), "")
}

func everyRunFilter(b *bed) {
	all := b.runsInEveryState()
	found := map[lessor.RunStatus]int{}
	one := tenant(1)
	b.view(func(v scheduler.View) error {
		for _, claimed := range []bool{true, false} {
			for _, status := range statuses() {
				for _, state := range []lessor.State{"", lessor.Queued, lessor.Failed} {
					for _, definition := range []string{"", "nightly", "none"} {
						for _, tenant := range []*lessor.TenantID{nil, &one} {
							for _, limit := range []int{1, 7, 100} {
								q := scheduler.ListQuery{
									Claimed: claimed, Status: status, State: state, Definition: definition,
									Tenant: tenant, Limit: limit,
								}
								got := b.list(v, q)
								found[status] += len(got)
								b.same(fmt.Sprintf("runs of %+v", q), ids(got), ids(matching(all, q)))
							}
						}
					}
				}
			}
		}
		b.same("claimed runs", b.list(v, scheduler.ListQuery{Claimed: true, Limit: 10}),
			matching(all, scheduler.ListQuery{Claimed: true}))
		return nil
	})
	for _, status := range statuses() {
		if found[status] == 0 {
			b.Errorf("this test has no run that is %q", status)
		}
	}
}

// matching returns the standings that match, newest first.
func matching(all []*rules.Standing, q scheduler.ListQuery) []*rules.Standing {
	want := []*rules.Standing{}
	for _, s := range slices.Backward(all) {
		if runMatches(s, q) {
			want = append(want, s)
		}
	}
	return want
}

func ids(standings []*rules.Standing) []string {
	all := make([]string, 0, len(standings))
	for _, s := range standings {
		all = append(all, s.Spec.ID.String())
	}
	return all
}

// runPages reads lists of runs page by page while other runs begin and end.
func runPages(b *bed) {
	for _, q := range []scheduler.ListQuery{
		{Claimed: true, Limit: 2},
		{Claimed: true, Definition: "nightly", Limit: 2},
		{Status: lessor.RunRetrying, Limit: 1},
		{Status: lessor.RunQueued, Limit: 1},
		{Definition: "hourly", Limit: 3},
	} {
		stay := ids(matching(b.runsInEveryState(), q))
		seen := map[string]bool{}
		for {
			var page scheduler.ListPage
			b.view(func(v scheduler.View) (err error) {
				page, err = v.List(b.Context(), q)
				return err
			})
			for _, id := range ids(page.Standings) {
				if seen[id] {
					b.Fatalf("%+v: job %s is on two pages", q, id)
				}
				seen[id] = true
			}
			b.end(b.grant(b.queued(func(s *rules.Spec) {
				s.Lane.Definition = "nightly"
			}), "w9"), []rules.End{completed, released}[len(seen)%2])
			if page.Next == nil {
				break
			}
			q.After = page.Next
		}
		for _, id := range stay {
			if !seen[id] {
				b.Fatalf("%+v: job %s is on no page", q, id)
			}
		}
	}
}

// runsByTrace: a trace id is the job's own id in hexadecimal, or was given, and may then be that of another job.
func runsByTrace(b *bed) {
	traced := func(trace string) func(*rules.Spec) {
		return func(s *rules.Spec) {
			if s.TraceID = trace; trace == "" {
				s.TraceID = fmt.Sprintf("%x", s.ID.UUID[:])
			}
		}
	}
	alone, parent := b.queued(traced("")), b.queued(traced(""))
	var given, children []lessor.JobID
	for i := range 5 {
		s := b.queued(traced("4bf92f3577b34da6a3ce929d0e0e4736"), func(s *rules.Spec) {
			s.Lane.Tenant = tenant(byte(i % 2))
		})
		given = append(given, s.ID)
		child := b.queued(traced(parent.TraceID), func(s *rules.Spec) {
			s.Lane.Definition = []string{"", "nightly"}[i%2]
		})
		children = append(children, child.ID)
		if i > 2 {
			b.end(b.grant(child, "w1"), completed)
		}
	}
	slices.Reverse(given)
	slices.Reverse(children)
	one := tenant(1)
	b.view(func(v scheduler.View) error {
		for _, c := range []struct {
			q    scheduler.ListQuery
			want []lessor.JobID
		}{
			{scheduler.ListQuery{Trace: alone.TraceID}, []lessor.JobID{alone.ID}},
			{scheduler.ListQuery{Trace: parent.TraceID}, append(slices.Clone(children), parent.ID)},
			{scheduler.ListQuery{Trace: parent.TraceID, Claimed: true}, children[:2]},
			{scheduler.ListQuery{Trace: parent.TraceID, Status: lessor.RunSuccess}, children[:2]},
			{
				scheduler.ListQuery{Trace: parent.TraceID, Definition: "nightly"},
				[]lessor.JobID{children[1], children[3]},
			},
			{scheduler.ListQuery{Trace: "4bf92f3577b34da6a3ce929d0e0e4736"}, given},
			{
				scheduler.ListQuery{Trace: "4bf92f3577b34da6a3ce929d0e0e4736", Tenant: &one},
				[]lessor.JobID{given[1], given[3]},
			},
			{scheduler.ListQuery{Trace: "4bf92f3577b34da6"}, nil},
			{scheduler.ListQuery{Trace: "no hex"}, nil},
			{scheduler.ListQuery{Trace: fmt.Sprintf("%X", given[0].UUID[:])}, nil}, // it was given another
		} {
			var got []lessor.JobID
			c.q.Limit = 2
			for _, s := range b.list(v, c.q) {
				got = append(got, s.Spec.ID)
			}
			b.same(fmt.Sprintf("jobs of %+v", c.q), got, append([]lessor.JobID{}, c.want...))
		}
		return nil
	})
}
