package storetest

import (
	"fmt"
	"strings"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// leases reads live leases to change them, as a heartbeat does.
func (b *bed) leases(ids ...lessor.LeaseID) (got map[lessor.LeaseID]*rules.Held) {
	b.Helper()
	b.update(func(tx scheduler.Tx) (err error) {
		got, err = tx.Leases(b.Context(), ids)
		return err
	})
	return got
}

func full(h *rules.Held) {
	h.RequestID, h.WorkspaceID, h.MaxRuntime, h.WatchUntil, h.Reattached = "req-1", "ws-1", time.Hour, 77, 2
	h.Taker, h.Token = "ci", lessor.TokenID{UUID: lessor.UUID{15: 7}}
}

func beatIsKept(b *bed) {
	h := b.grant(b.queued(), "w1", full)
	other := b.grant(b.queued(), "w1")
	b.same("leases", b.leases(h.ID, b.leaseID(), h.ID), map[lessor.LeaseID]*rules.Held{h.ID: h})
	want := *h
	want.ExpiresAt, want.FirstBeatAt, want.BeatAt, want.TTL = h.ExpiresAt+9, h.IssuedAt+1, h.IssuedAt+2, 2*time.Minute
	want.CancelAt, want.WatchUntil, want.Reattached, want.Journal = h.IssuedAt+3, h.IssuedAt+4, 3, journalSize
	b.update(func(tx scheduler.Tx) error {
		saved := want
		if err := tx.SaveLeases(b.Context(), []*rules.Held{&saved}); err != nil {
			return err
		}
		saved.ExpiresAt = 1 // what was saved is not what the caller holds
		got, err := tx.Leases(b.Context(), []lessor.LeaseID{h.ID})
		b.same("lease in its transaction", got[h.ID], &want)
		return err
	})
	check := func() {
		b.same("leases", b.leases(h.ID, other.ID), map[lessor.LeaseID]*rules.Held{h.ID: &want, other.ID: other})
		st := b.standing(h.Turn.Job)
		b.same("lease in standing", st.Held, &want)
		if st.State() != lessor.Running {
			b.Fatalf("after its first beat the job is %s", st.State())
		}
	}
	check()
	b.reopen()
	check()
}

func copiesMayBeChanged(b *bed) {
	h := b.grant(b.queued(), "w1", full)
	ref := requestOf("w1", "req-1")
	b.update(func(tx scheduler.Tx) error {
		got, err := tx.Leases(b.Context(), []lessor.LeaseID{h.ID})
		if err != nil {
			return err
		}
		requested, err := tx.Requested(b.Context(), []scheduler.RequestRef{ref})
		if err != nil {
			return err
		}
		got[h.ID].ExpiresAt, requested[ref][0].ExpiresAt = 1, 2
		return tx.EachLease(b.Context(), func(h *rules.Held) error {
			h.ExpiresAt = 3
			return nil
		})
	})
	b.same("lease that was not saved", b.leases(h.ID)[h.ID], h)
}

func foundByRequest(b *bed) {
	ask := func(worker, id string) func(*rules.Held) {
		return func(h *rules.Held) { h.Worker, h.RequestID = worker, id }
	}
	one := b.grant(b.queued(), "", ask("w1", "r1"))
	two := b.grant(b.queued(), "", ask("w1", "r1"))
	b.grant(b.queued(), "", ask("w1", "r2"))
	b.grant(b.queued(), "", ask("w2", "r1"))
	b.grant(b.queued(), "", ask("w1", ""))
	bound := b.grant(b.queued(), "", func(h *rules.Held) { h.Worker, h.RequestID, h.Bound = "w1", "r1", true })
	ref := requestOf("w1", "r1")
	own := scheduler.RequestRef{Holder: rules.Holder{Space: acme, Worker: "w1"}, RequestID: "r1"}
	theirs := scheduler.RequestRef{Holder: rules.Holder{Space: globex, Worker: "w1"}, RequestID: "r1"}
	find := func() (got map[scheduler.RequestRef][]*rules.Held) {
		b.update(func(tx scheduler.Tx) (err error) {
			got, err = tx.Requested(b.Context(), []scheduler.RequestRef{ref, requestOf("w3", "r1"), ref, theirs, own})
			return err
		})
		return got
	}
	b.same("leases of a request", find(), map[scheduler.RequestRef][]*rules.Held{ref: {one, two}, own: {bound}})
	b.reopen()
	b.same("leases of a request", find(), map[scheduler.RequestRef][]*rules.Held{ref: {one, two}, own: {bound}})
	b.end(bound, completed)
	b.end(one, released)
	b.same("leases of a request", find(), map[scheduler.RequestRef][]*rules.Held{ref: {two}})
	b.end(two, completed)
	b.same("leases of a request", find(), nil)
}

func endIsRemembered(b *bed) {
	s := b.queued(func(s *rules.Spec) { s.Lane.Tenant = globex })
	want := map[lessor.LeaseID]scheduler.LeaseEnd{}
	ids := []lessor.LeaseID{b.leaseID()}
	for _, e := range []rules.End{released, failed, expired, fatal} {
		h := b.grant(s, "w1")
		ids = append(ids, h.ID)
		b.end(h, e)
		want[h.ID] = scheduler.LeaseEnd{
			Worker: "w1", Tenant: globex, Outcome: e.Outcome, Said: e.Said, Reason: e.Reason,
		}
		switch b.standing(s.ID).Place {
		case rules.Delayed:
			b.promote(s.ID)
		case rules.Ended:
			b.change(s.ID, retry)
		}
	}
	h := b.grant(s, "w2")
	ids = append(ids, h.ID)
	read := func() {
		b.view(func(v scheduler.View) error {
			got, err := v.LeaseEnds(b.Context(), ids)
			b.same("ends", got, want)
			return err
		})
	}
	read()
	b.end(h, completed)
	want[h.ID] = scheduler.LeaseEnd{
		Worker: "w2", Tenant: globex, Outcome: completed.Outcome, Said: completed.Said, Reason: completed.Reason,
	}
	read()
}

func leaseList(b *bed) {
	var all []*rules.Held // newest first
	for i := range 7 {
		typ := fmt.Sprint("type-", i%3+1)
		s := b.queued(func(s *rules.Spec) { s.Lane.Tenant, s.Lane.Type = tenant(byte(i%2)), typ })
		token := func(h *rules.Held) { h.Token = lessor.TokenID{UUID: lessor.UUID{15: byte(i % 3)}} } // 0 = none
		all = append([]*rules.Held{b.grant(s, []string{"w1", "w2", "w3"}[i%3], token)}, all...)
	}
	b.end(all[3], completed)
	all = append(all[:3:3], all[4:]...)
	zero, two, nobodys := tenant(0), lessor.TokenID{UUID: lessor.UUID{15: 2}}, lessor.TokenID{UUID: lessor.UUID{15: 9}}
	for _, q := range []scheduler.LeaseQuery{
		{},
		{Worker: "w1"},
		{Worker: "w2"},
		{Worker: "nobody"},
		{Tenant: &zero},
		{Worker: "w3", Tenant: &zero},
		{Token: &two},
		{Token: &two, Tenant: &zero},
		{Token: &nobodys},
	} {
		var want []*rules.Held
		for _, h := range all {
			if (q.Worker == "" || h.Worker == q.Worker) && (q.Tenant == nil || h.Tenant == *q.Tenant) &&
				(q.Token == nil || h.Token == *q.Token) {
				want = append(want, h)
			}
		}
		q.Limit = perPage
		got := readPages(b, "leases", q, scheduler.View.LeaseList,
			func(q *scheduler.LeaseQuery, last scheduler.ListedLease) { q.After = &last.Place })
		for _, l := range got {
			b.same("type", "w"+strings.TrimPrefix(l.Type, "type-"), l.Worker)
		}
		b.same("leases", heldOf(got), want)
	}
}

func leasesOfAWorkspace(b *bed) {
	from := func(workspace string) func(*rules.Held) { return func(h *rules.Held) { h.WorkspaceID = workspace } }
	want := map[lessor.LeaseID]*rules.Held{}
	for _, workspace := range []string{"ws-1", "", "ws-2", "ws-1"} {
		if h := b.grant(b.queued(), "w1", from(workspace)); workspace == "ws-1" {
			want[h.ID] = h
		}
	}
	read := func(v scheduler.View) error {
		for workspace, want := range map[string]map[lessor.LeaseID]*rules.Held{"ws-1": want, "nobody's": {}, "": {}} {
			held, err := v.WorkspaceLeases(b.Context(), workspace)
			if err != nil {
				return err
			}
			got := map[lessor.LeaseID]*rules.Held{}
			for _, h := range held {
				got[h.ID] = h
			}
			b.same("leases of workspace "+workspace, got, want)
		}
		return nil
	}
	check := func() {
		b.Helper()
		b.view(read)
		b.update(func(tx scheduler.Tx) error { return read(tx) })
	}
	check()
	b.reopen()
	check()
	for id, h := range want {
		b.end(h, completed)
		delete(want, id)
		break
	}
	check()
}

func failedBeatIsForgotten(b *bed) {
	h := b.grant(b.queued(), "w1", full)
	ended := b.grant(b.queued(), "w1", full)
	b.wants(b.Update(b.Context(), func(tx scheduler.Tx) error {
		for i := range 3 {
			extended := *h
			extended.FirstBeatAt, extended.ExpiresAt = tx.Now(), h.ExpiresAt+lessor.Instant(i)
			if err := tx.SaveLeases(b.Context(), []*rules.Held{&extended}); err != nil {
				return err
			}
		}
		m, err := endMove(ended, completed, tx.Now())
		if err != nil {
			return err
		}
		if err := tx.Move(b.Context(), []scheduler.Move{m}); err != nil {
			return err
		}
		if got, err := tx.Leases(b.Context(), []lessor.LeaseID{ended.ID}); err != nil || len(got) != 0 {
			b.Fatalf("a lease that ended in this transaction is found: %v, %v", got, err)
		}
		return errTest
	}), errTest)
	b.same("leases", b.leases(h.ID, ended.ID), map[lessor.LeaseID]*rules.Held{h.ID: h, ended.ID: ended})
	ref := requestOf("w1", "req-1")
	b.update(func(tx scheduler.Tx) error {
		got, err := tx.Requested(b.Context(), []scheduler.RequestRef{ref})
		if len(got[ref]) != 2 {
			b.Fatalf("%d leases of the request, want 2", len(got[ref]))
		}
		return err
	})
}

func dueInOrder(b *bed) {
	var specs []*rules.Spec
	for i := range 6 {
		specs = append(specs, b.queued(func(s *rules.Spec) { s.RunAt = 4_000_000_000_000 + lessor.Instant(i*7%6) }))
	}
	next := func() (at lessor.Instant) {
		b.view(func(v scheduler.View) (err error) {
			at, err = v.NextDue(b.Context())
			return err
		})
		return at
	}
	due := func(now lessor.Instant, limit int) (at []lessor.Instant) {
		b.update(func(tx scheduler.Tx) error {
			all, err := tx.Due(b.Context(), now, limit)
			for _, w := range all {
				at = append(at, w.Wait.Until-4_000_000_000_000)
				st, err := tx.Standings(b.Context(), []lessor.JobID{w.Turn.Job})
				b.must(err)
				b.same("turn of a due job", w.Turn, st[w.Turn.Job].Turn)
				b.same("wait of a due job", w.Wait, st[w.Turn.Job].Wait)
			}
			return err
		})
		return at
	}
	b.same("next", next(), lessor.Instant(4_000_000_000_000))
	b.same("before all", due(3_999_999_999_999, 10), nil)
	b.same("up to the third, itself included", due(4_000_000_000_002, 10), []lessor.Instant{0, 1, 2})
	b.same("two of all", due(4_000_000_000_009, 2), []lessor.Instant{0, 1})
	b.same("none asked for", due(4_000_000_000_009, 0), nil)
	b.promote(specs[0].ID)
	b.same("next after the first left", next(), lessor.Instant(4_000_000_000_001))
	for _, s := range specs[1:] {
		b.promote(s.ID)
	}
	b.same("next of none", next(), lessor.Instant(0))
}
