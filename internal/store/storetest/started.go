package storetest

import (
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// startedAtFirstGrant retries jobs: a run starts at its first grant, and its error is that of the last attempt that
// failed.
func startedAtFirstGrant(b *bed) {
	var s *rules.Spec
	var start lessor.Instant
	var ref string
	check := func(when string) {
		b.Helper()
		run, claimed := rules.RunOf(b.standing(s.ID))
		if claimed != (start != 0) || run.StartedAt != start || run.LastErrorRef != ref {
			b.Fatalf("%s: claimed %v, started at %v with error %q; want %v, %q", when, claimed, run.StartedAt,
				run.LastErrorRef, start, ref)
		}
	}
	grant := func() *rules.Held {
		b.Helper()
		if b.standing(s.ID).Place == rules.Delayed {
			b.promote(s.ID)
		}
		h := b.grant(s, "w1", func(h *rules.Held) {
			h.IssuedAt += lessor.Instant(b.count) * 1000
		}) // no two at one time
		if start == 0 {
			start = h.IssuedAt
		}
		check("while it is held")
		return h
	}
	end := func(e rules.End) {
		b.Helper()
		h := grant()
		b.end(h, e)
		if e.Outcome == rules.OutcomeFailed || e.Outcome == rules.OutcomeExpired {
			ref = h.ID.String()
		}
		check("after it ended " + string(e.Outcome))
	}
	wish := func(decide func(*rules.Standing, lessor.Instant) (rules.Change, error)) {
		b.Helper()
		b.change(s.ID, decide)
		check("after an operator's wish")
	}
	for _, life := range []func(){
		func() { end(completed) },
		func() { end(fatal) },
		func() { wish(cancel) },
		func() { end(released); end(completed) },
		func() { end(failed); end(released); end(expired); end(completed) },
		func() { end(failed); wish(cancel); wish(retry); end(completed) },
		func() {
			end(fatal)
			wish(retry)
			end(fatal)
			wish(retry)
			end(released)
			end(completed)
		},
		func() { end(released); wish(cancel); wish(retry); end(completed) },
		func() { wish(cancel); wish(retry); end(released); end(fatal) },
		func() { b.firstBeat(grant()); wish(cancel) },
		func() { wish(reject) },
		func() { end(released); ref = s.ID.String(); wish(reject) },
		func() { end(failed); b.promote(s.ID); ref = s.ID.String(); wish(reject) },
	} {
		s, start, ref = b.queued(), 0, ""
		check("before its first grant")
		life()
		b.reopen()
		check("after a restart")
	}
}

func (b *bed) openRuns(limit int, tenant lessor.TenantID, ids ...string) map[string][]scheduler.OpenRun {
	b.Helper()
	var definitions []*rules.Definition
	for _, id := range ids {
		definitions = append(definitions, &rules.Definition{ID: id, Tenant: tenant})
	}
	return readTwice(b, "open runs", func(v scheduler.View) (map[string][]scheduler.OpenRun, error) {
		return v.OpenRuns(b.Context(), definitions, limit)
	})
}

func openOldestFirst(b *bed) {
	all := b.runsInEveryState()
	for i, limit := range []int{1000, 1000, 3, 3, 0} {
		tenant := tenant(byte(i % 2))
		want := map[string][]scheduler.OpenRun{}
		for _, s := range all {
			if d := s.Spec.Lane.Definition; d != "" && s.Spec.Lane.Tenant == tenant && s.Place != rules.Ended &&
				len(want[d]) < limit {
				want[d] = append(want[d], scheduler.OpenRun{Job: s.Spec.ID, Claimed: s.Turn.Fence != 0})
			}
		}
		b.same("open runs", b.openRuns(limit, tenant, "nightly", "hourly", "none"), want)
		delete(want, "hourly")
		b.same("open runs of one", b.openRuns(limit, tenant, "nightly"), want)
	}
	b.update(func(tx scheduler.Tx) error {
		_, err := tx.Purge(b.Context(), tx.Now()+1, 1000)
		return err
	})
	for _, definition := range []string{"nightly", "hourly"} {
		want := slices.DeleteFunc(slices.Clone(all), func(s *rules.Standing) bool {
			return s.Place == rules.Ended || s.Spec.Lane.Definition != definition
		})
		slices.Reverse(want)
		b.view(func(v scheduler.View) error {
			b.same("jobs of a definition after the ended are purged",
				ids(b.list(v, scheduler.ListQuery{Definition: definition, Limit: 5})), ids(want))
			return nil
		})
	}
}

func attemptOfALease(b *bed) {
	attempt := func(id lessor.LeaseID) (*rules.Attempt, lessor.TenantID) {
		b.Helper()
		type made struct {
			Attempt *rules.Attempt
			Tenant  lessor.TenantID
		}
		m := readTwice(b, "attempt", func(v scheduler.View) (m made, err error) {
			m.Attempt, m.Tenant, err = v.AttemptOf(b.Context(), id)
			return m, err
		})
		return m.Attempt, m.Tenant
	}
	s := b.queued(func(s *rules.Spec) { s.Lane.Tenant = globex })
	wants := map[lessor.LeaseID]*rules.Attempt{}
	for _, e := range []rules.End{failed, released, expired, fatal} {
		h := b.grant(s, "w1")
		if a, _ := attempt(h.ID); a != nil {
			b.Fatalf("a lease that lives has an attempt that ended: %+v", a)
		}
		m := b.end(h, e)
		if wants[h.ID] = m.Attempt; m.Done != nil {
			wants[h.ID] = &m.Done.Attempt
		}
		if m.To == rules.Delayed {
			b.promote(s.ID)
		}
	}
	check := func(when string) {
		b.Helper()
		for id, want := range wants {
			got, tenant := attempt(id)
			b.same("attempt "+when, got, want)
			b.same("its tenant", tenant, globex)
		}
	}
	check("while its job stands")
	b.change(s.ID, retry)
	check("after an operator's retry")
	if a, _ := attempt(b.leaseID()); a != nil {
		b.Fatalf("an unknown lease has an attempt: %+v", a)
	}
	b.change(s.ID, cancel)
	b.purge(1<<42, 10)
	for id := range wants {
		if a, _ := attempt(id); a != nil {
			b.Fatalf("a purged job has an attempt: %+v", a)
		}
	}
}

func locksInOrder(b *bed) {
	var all []*rules.Held // the last that was taken first
	for _, tenant := range []lessor.TenantID{globex, tenant(0), acme} {
		for _, key := range []string{"b", "c", "a"} {
			all = append(all, b.grant(b.queued(func(s *rules.Spec) {
				s.Lane.Tenant, s.Lane.LockKey = tenant, key
			}), "w1", full))
		}
	}
	b.grant(b.queued(), "w1") // holds none
	b.end(b.grant(b.queued(func(s *rules.Spec) { s.Lane.LockKey = "over" }), "w1"), completed)
	b.firstBeat(all[2])
	read := func(tenant *lessor.TenantID) []*rules.Held {
		b.Helper()
		q := scheduler.LockQuery{Tenant: tenant, Limit: perPage}
		return heldOf(readPages(b, "locks", q, scheduler.View.LockList,
			func(q *scheduler.LockQuery, last scheduler.ListedLease) { q.After = &last.Place }))
	}
	slices.Reverse(all)
	b.same("locks", read(nil), all)
	b.same("locks of one tenant", read(&acme), all[:3])
	none := tenant(7)
	b.same("locks of a tenant without any", read(&none), nil)
}
