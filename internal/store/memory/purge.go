package memory

import (
	"cmp"
	"context"
	"slices"

	"lessor"
	"lessor/internal/rules"
)

// endedJobs locks a page of jobs that ended before an instant and after a place in done, the oldest first. Those that
// another node has locked are passed over.
func (t *tx) endedJobs(after key, before lessor.Instant, limit int) (page []*job) {
	for k, j := range t.state.done.from(after) {
		if k.n >= int64(before) || len(page) >= limit {
			break
		}
		if t.try(j.lock()) {
			page = append(page, j)
		}
	}
	return page
}

// freeKey lets the idempotency key of a job be used again.
func (s *tables) freeKey(j *job) {
	k := key{text: j.Spec.IdempotencyKey, id: j.Spec.Lane.Tenant.UUID}
	if held, ok := s.keys.get(k); ok && held.Job == j.Spec.ID {
		s.keys.drop(k)
	}
}

// Strip implements scheduler.Tx. While another node strips there is nothing to do.
func (t *tx) Strip(_ context.Context, before lessor.Instant, limit int) (n int, err error) {
	err = t.do("strip", func() error {
		if !t.try(lock{table: "stripped"}) {
			return nil
		}
		if t.state.stripped.n > int64(before) { // the clock was set back, and what ends now may end before the mark
			t.write(func(s *tables) { s.stripped = key{n: int64(before)} })
		}
		page := t.endedJobs(t.state.stripped, before, limit)
		n = len(page)
		for _, j := range page {
			stripped := new(*j)
			stripped.Spec, stripped.Done, stripped.Report = new(*j.Spec), new(*j.Done), nil
			stripped.Spec.Payload, stripped.Done.Result = nil, nil
			t.write(func(s *tables) {
				s.freeKey(j)
				s.dropJournal(j)
				s.place(stripped)
				s.dropOutput(j.Spec.ID.UUID)
				s.stripped = key{n: int64(j.Done.Attempt.EndedAt), m: j.Turn.Seq + 1}
			})
		}
		return nil
	})
	return n, err
}

// Purge implements scheduler.Tx.
func (t *tx) Purge(_ context.Context, before lessor.Instant, limit int) (n int, err error) {
	err = t.do("purge", func() error {
		page := t.endedJobs(key{}, before, limit)
		n = len(page)
		for _, j := range page {
			t.write(func(s *tables) { s.forget(j) })
		}
		return nil
	})
	return n, err
}

// forget removes an ended job with everything about it.
func (s *tables) forget(j *job) {
	id := j.Spec.ID.UUID
	s.freeKey(j)
	s.take(j)
	s.jobs.drop(key{id: id})
	s.ends.drop(key{id: j.Done.Attempt.Lease.UUID})
	for k, a := range s.attempts.under("", id) {
		s.attempts.drop(k)
		s.ends.drop(key{id: a.Lease.UUID})
	}
	s.dropOutput(id)
	for k := range s.notes.under("", id) {
		s.notes.drop(k)
	}
	for k := range s.messages.under("", id) {
		s.messages.drop(k)
	}
	s.dropJournal(j)
}

func (s *tables) dropJournal(j *job) {
	for k := range s.journal.under("", j.Spec.ID.UUID) {
		s.journal.drop(k)
	}
}

// PurgeRecords implements scheduler.Tx.
func (t *tx) PurgeRecords(_ context.Context, before lessor.Instant, limit int) (n int, err error) {
	err = t.do("purge", func() error {
		n += purgeOld(t, "tick", limit, before, func(s *tables) *table[rules.TickRow] { return &s.ticks },
			func(v rules.TickRow) lessor.Instant { return v.At })
		n += purgeOld(t, "alert", limit, before, func(s *tables) *table[lessor.Alert] { return &s.alerts },
			func(v lessor.Alert) lessor.Instant { return v.ClearedAt })
		n += purgeOld(t, "audit", limit, before, func(s *tables) *table[lessor.Audited] { return &s.audit },
			func(v lessor.Audited) lessor.Instant { return v.At })
		return nil
	})
	return n, err
}

// purgeOld removes a page of the rows from before an instant, the oldest first, and counts them. It skips rows that
// another node purges. Rows with the instant 0 stay.
func purgeOld[V any](
	t *tx, name string, limit int, before lessor.Instant, rows func(*tables) *table[V], at func(V) lessor.Instant,
) (n int) {
	type old struct {
		key key
		at  lessor.Instant
	}
	var olds []old
	for k, v := range rows(&t.state).all() {
		if at(v) != 0 && at(v) < before {
			olds = append(olds, old{k, at(v)})
		}
	}
	slices.SortStableFunc(olds, func(a, b old) int { return cmp.Compare(a.at, b.at) })
	for _, o := range olds {
		if n < limit && t.try(lock{name, o.key}) {
			n++
			t.write(func(s *tables) { rows(s).drop(o.key) })
		}
	}
	return n
}
