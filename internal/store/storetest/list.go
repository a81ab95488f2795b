package storetest

import (
	"fmt"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// jobsInEveryState stores jobs in every state, of several types, tenants and tags. It returns their standings, oldest
// first.
func (b *bed) jobsInEveryState() []*rules.Standing {
	b.Helper()
	var ids []lessor.JobID
	for i := range 48 {
		s := b.draft(func(s *rules.Spec) {
			s.Lane.Type, s.Lane.Tenant = []string{"mail", "mailbox"}[i%2], tenant(byte(i%3))
			s.Tags = [][]string{nil, {"red"}, {"red", "blue"}, {"re"}, {`r"ed`}}[i%5]
			if i%8 == 1 {
				later(s)
			}
		})
		ids = append(ids, s.ID)
		b.submit(s)
		if i%8 <= 1 {
			continue // queued, in line or not due
		}
		h := b.grant(s, "w1")
		switch i % 8 {
		case 3:
			h.FirstBeatAt = h.IssuedAt
			b.update(func(tx scheduler.Tx) error { return tx.SaveLeases(b.Context(), []*rules.Held{h}) })
		case 4:
			b.end(h, completed)
		case 5:
			b.end(h, []rules.End{failed, asked}[i/8%2])
		case 6:
			b.end(h, []rules.End{fatal, expired}[i/8%2])
		case 7:
			b.change(s.ID, cancel)
		}
	}
	var all []*rules.Standing
	for _, id := range ids {
		all = append(all, b.standing(id))
	}
	return all
}

func everyFilter(b *bed) {
	all := b.jobsInEveryState()
	none, one := tenant(0), tenant(1)
	types, tags := []string{"", "mail", "mailbox", "none"}, []string{"", "red", "blue", `r"ed`, "none"}
	tenants := []*lessor.TenantID{nil, &none, &one}
	for _, state := range append(lessor.States(), "") {
		for _, typ := range types {
			for _, tag := range tags {
				for _, tenant := range tenants {
					q := scheduler.ListQuery{State: state, Type: typ, Tag: tag, Tenant: tenant, Limit: 3}
					want := []*rules.Standing{}
					for _, s := range slices.Backward(all) {
						if matches(s, q) {
							want = append(want, s)
						}
					}
					b.view(func(v scheduler.View) error {
						b.same(fmt.Sprintf("jobs of %+v", q), b.list(v, q), want)
						return nil
					})
				}
			}
		}
	}
}

// tenantsOfManyLanes lists the jobs of tenants with a lane for each job, and of one with a single lane.
func tenantsOfManyLanes(b *bed) {
	const jobs = 900
	specs, count := make([]*rules.Spec, jobs), map[lessor.TenantID]int{}
	for i := range specs {
		specs[i] = b.draft(func(s *rules.Spec) {
			if s.Lane.Tenant = tenant(byte(i % 3)); i%3 != 2 {
				s.Lane.LockKey = fmt.Sprint("lock-", i)
			}
		})
		count[specs[i].Lane.Tenant]++
	}
	b.submit(specs...)
	for of, want := range count {
		b.view(func(v scheduler.View) error {
			got := b.list(v, scheduler.ListQuery{Tenant: &of, Limit: 64})
			for _, s := range got {
				if s.Spec.Lane.Tenant != of {
					b.Errorf("the list of %v has a job of %v", of, s.Spec.Lane.Tenant)
				}
			}
			if len(got) != want {
				b.Errorf("%v has %d jobs, and the list %d", of, want, len(got))
			}
			return nil
		})
	}
}

func matches(s *rules.Standing, q scheduler.ListQuery) bool {
	return (q.State == "" || s.State() == q.State) && (q.Type == "" || s.Spec.Lane.Type == q.Type) &&
		(q.Tag == "" || slices.Contains(s.Spec.Tags, q.Tag)) && (q.Tenant == nil || s.Spec.Lane.Tenant == *q.Tenant)
}

// pagesNeitherRepeatNorLose reads lists page by page while jobs come and go.
func pagesNeitherRepeatNorLose(b *bed) {
	for _, state := range append(lessor.States(), "") {
		stay := map[lessor.JobID]bool{}
		for _, s := range b.jobsInEveryState() {
			stay[s.Spec.ID] = state == "" || s.State() == state
		}
		seen := map[lessor.JobID]bool{}
		q := scheduler.ListQuery{State: state, Limit: 2}
		for {
			var page scheduler.ListPage
			b.view(func(v scheduler.View) (err error) {
				page, err = v.List(b.Context(), q)
				return err
			})
			for _, s := range page.Standings {
				if seen[s.Spec.ID] {
					b.Fatalf("%s: job %s is on two pages", state, s.Spec.ID)
				}
				seen[s.Spec.ID] = true
			}
			b.queued() // newer than the first page
			b.grant(b.queued(), "w9")
			if page.Next == nil {
				break
			}
			q.After = page.Next
		}
		for id, stays := range stay {
			if stays && !seen[id] {
				b.Fatalf("%s: job %s is on no page", state, id)
			}
		}
	}
}

// cursorOfAJobThatLeft continues a list after a job that has moved to another place, or was purged.
func cursorOfAJobThatLeft(b *bed) {
	var specs []*rules.Spec
	for range 6 {
		specs = append(specs, b.queued())
	}
	after := func(id lessor.JobID) (got []lessor.JobID) {
		b.view(func(v scheduler.View) error {
			for _, s := range b.list(v, scheduler.ListQuery{State: lessor.Queued, After: &id, Limit: 2}) {
				got = append(got, s.Spec.ID)
			}
			return nil
		})
		return got
	}
	want := []lessor.JobID{specs[2].ID, specs[1].ID, specs[0].ID}
	b.same("behind the fourth", after(specs[3].ID), want)
	b.end(b.grant(specs[3], "w1"), completed)
	b.same("behind the fourth, which has ended", after(specs[3].ID), want)
	b.update(func(tx scheduler.Tx) error {
		_, err := tx.Purge(b.Context(), tx.Now()+1, 10)
		return err
	})
	b.same("behind the fourth, which is gone", after(specs[3].ID), want)
	b.same("behind the oldest", after(specs[0].ID), nil)
}
