package main

import (
	"context"
	"encoding/json"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// checkRegularly reads the tables at intervals, and compares the fold of a node with them.
func (w *world) checkRegularly(t *task) {
	r := w.rng("patrol")
	for i := 1; ; i++ {
		t.sleep(5 * time.Second)
		w.read(w.known.scan)
		w.known.checkWaits()
		w.known.checkTicks()
		if n := w.db.Deadlocks(); n > 0 {
			w.fail("deadlock", "%d transactions waited for one that waited for them", n)
		}
		if i%60 == 0 {
			w.known.records()
			w.known.checkRecords()
			w.drifts(t, w.nodes[r.IntN(len(w.nodes))])
		}
	}
}

// drifts compares the fold of a node with the tables.
func (w *world) drifts(t *task, n *node) {
	if n.dead || n.stopping {
		return
	}
	_, err := serve(ctx, t, n, func(ctx context.Context, n *node) (struct{}, error) {
		return struct{}{}, n.Drift(ctx)
	})
	if err != nil && w.noFaultFor(10*time.Second) && lessor.CodeOf(err) == "" {
		w.fail("drift", "%s: %v", n.name, err)
	}
}

// eachJob calls fn with every job of the tables.
func (b *knowledge) eachJob(fn func(h *rules.History)) {
	b.read(func(v scheduler.View) error {
		q := scheduler.ListQuery{Limit: 500}
		for {
			page, err := v.List(ctx, q)
			if err != nil {
				return err
			}
			ids := make([]lessor.JobID, len(page.Standings))
			for i, st := range page.Standings {
				ids[i] = st.Spec.ID
			}
			all, err := v.Histories(ctx, ids)
			if err != nil {
				return err
			}
			for _, id := range ids {
				fn(all[id])
			}
			if q.After = page.Next; q.After == nil {
				return nil
			}
		}
	})
}

// recount counts the jobs that have not ended and wait only for their turn.
func (b *knowledge) recount() {
	b.open = 0
	b.read(func(v scheduler.View) error {
		return v.EachQueued(ctx, func(rules.Turn) error {
			b.open++
			return nil
		})
	})
}

// entry is what an entry of a record says.
type entry struct {
	at            lessor.Instant
	to            lessor.State
	actor, reason string
	fence         int64
	attempt       int
}

// records checks the records of all jobs (P13), that attempts are bounded (P9), and ticks (P10).
func (b *knowledge) records() {
	b.eachJob(func(h *rules.History) {
		st := &h.Standing
		b.record(b.job(st.Spec.ID, st.Spec.Lane.Tenant), h)
		if st.Turn.Attempt > st.Turn.MaxAttempts {
			b.fail("P9", "job %v has %d attempts of %d", st.Spec.ID, st.Turn.Attempt, st.Turn.MaxAttempts)
		}
		if st.Spec.TickAt == 0 || st.Spec.Actor != rules.ActorScheduler {
			return // an operator may have it run again
		}
		of := tickOf{st.Spec.Lane.Definition, st.Spec.Lane.Tenant, st.Spec.TickAt}
		if twin, known := b.ticks[of]; known && twin != st.Spec.ID {
			b.fail("P10", "jobs %v and %v are both of tick %v of %s", twin, st.Spec.ID, of.at, of.definition)
		}
		b.ticks[of] = st.Spec.ID
	})
}

// tickOf names a tick.
type tickOf struct {
	definition string
	tenant     lessor.TenantID
	at         lessor.Instant
}

// record compares the record of a job with the one seen before, and with its state.
func (b *knowledge) record(j *knownJob, h *rules.History) {
	record := rules.Record(h)
	if got := rules.Replay(record); got != h.Standing.State() {
		b.fail("P13", "the record of job %v replays to %s, it is %s", j.id, got, h.Standing.State())
	}
	entries := make([]entry, len(record))
	for i, e := range record {
		entries[i] = entry{e.At, e.To, e.Actor, e.Reason, 0, e.Attempt}
		if e.Fence != nil {
			entries[i].fence = *e.Fence
		}
	}
	for i, e := range j.record {
		if i >= len(entries) || entries[i] != e {
			b.fail("P13", "entry %d of the record of job %v was %+v, and the record is %+v", i, j.id, e, entries)
			return
		}
	}
	j.record = entries
}

// numberOf returns the number of the submission that a payload is of; -1 if it is of none.
func numberOf(payload json.RawMessage) int {
	p := struct{ N int }{-1}
	if json.Unmarshal(payload, &p) != nil {
		return -1
	}
	return p.N
}

// copied notes that a job may be continued as another one.
func (b *knowledge) copied(payload json.RawMessage) {
	if n := numberOf(payload); n >= 0 {
		b.subs[n].copies++
	}
}

// closing compares the tables with everything that was ever answered.
func (b *knowledge) closing() {
	b.read(b.scan)
	b.records()
	b.checkRecords()
	stored, there := make([]int, len(b.subs)), map[lessor.JobID]lessor.State{}
	b.eachJob(func(h *rules.History) {
		spec := h.Standing.Spec
		there[spec.ID] = h.Standing.State()
		b.untouched(spec)
		if n := numberOf(spec.Payload); n >= 0 {
			stored[n]++
		}
	})
	for _, j := range b.jobs {
		state, found := there[j.id]
		switch {
		case !found && !j.lost && b.config.Retention.Audit == 0:
			b.fail("P1", "job %v was known at %v and is gone", j.id, j.knownAt)
		case found && j.final != "" && !j.retried && state != j.final:
			b.fail("P1", "job %v was %s at %v and is %s", j.id, j.final, j.finalAt, state)
		}
	}
	for _, s := range b.subs {
		switch n := stored[s.number]; {
		case s.key != "" && n > 1+s.copies && b.config.Retention.Jobs == 0:
			b.fail("P2", "submission %d, with a key, is %d jobs", s.number, n)
		case n > s.acks+s.maybes+s.copies:
			b.fail("P15", "submission %d is %d jobs, %d were acknowledged and %d are in doubt",
				s.number, n, s.acks, s.maybes)
		}
	}
}
