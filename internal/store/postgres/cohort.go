package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

// A cohort is a row that new jobs share, instead of a row and an index entry each. The row never changes. A narrow row
// beside it has a bit for each job that is still queued; only a node that holds the gate clears bits (decision 15).
var (
	putCohort = wire.SQL("with jobs as (insert into cohort (first, queued_at, job, lane, max_attempts)" +
		" values ($1::bigint, $2::bigint, $3::uuid[], $4::bigint[], $5::bigint[]))" +
		" insert into cohort_left (first, jobs) values ($1, $6::bigint)")
	takeFromCohorts = wire.Plural(wire.Exactly("update cohort_left c set jobs = c.jobs & ~u.jobs from ({rows}) u"+
		" where "+wire.At("c.first", "u.first")+" and c.jobs & u.jobs = u.jobs", 2), "ii", "first, jobs")
	// checkPlaces makes sure that jobs have these places in line.
	checkPlaces = wire.SQL("select 1 / (case when count(*) = $3::bigint then 1 else 0 end) from " + placeParams +
		" join job j on j.id = m.job and j.seq = m.seq")
	dropSpent = wire.SQL("with spent as (delete from cohort_left where first = any(array(" +
		"select first from cohort_left where jobs = 0 limit 5000 for update skip locked)) returning first)" +
		" delete from cohort c using spent where " + wire.At("c.first", "spent.first"))

	// queuedColumns is the standing of a queued job.
	queuedColumns = row.Columns(queuedRow)

	readQueue = wire.SQL("select " + turnColumns + ", 0 from queue order by seq")
	// readCohorts leaves it to the reader to make turns of the rows: a million rows take the server two seconds.
	readCohorts = wire.SQL("select l.first, l.jobs, c.queued_at, c.job, c.lane, c.max_attempts from cohort_left l" +
		ofCohort + " where l.jobs <> 0 order by l.first")
)

const (
	// cohortOf finds the cohort in which job j is queued. Cohorts do not overlap.
	cohortOf = "(select first, jobs from cohort_left where first between j.seq - 63 and j.seq order by first desc" +
		" limit 1) c" +
		" where c.jobs >> (j.seq - c.first)::integer & 1 = 1"
	// ofCohort joins the cohorts of the rows l.
	ofCohort = " cross join lateral (select * from cohort where first = l.first offset 0) c"
	// cohortJobs are the jobs that the rows l have left.
	cohortJobs = ofCohort + " cross join lateral unnest(c.job, c.lane, c.max_attempts)" +
		" with ordinality as u (job, lane, max_attempts, n) where l.jobs >> (u.n - 1)::integer & 1 = 1"
	// cohortMin is the number of jobs at which one shared row becomes cheaper than one row per job; cohortMax is the
	// number of bits in a row.
	cohortMin = 8
	cohortMax = 64
	// spentEvery is the time between two removals of cohorts that have no job left.
	spentEvery = time.Second
)

// formCohorts sets the RowRef of new jobs: the seq of the first job of its cohort, 0 for a job with a row of its own.
// Jobs of a cohort have consecutive seqs and have only been submitted: they were never granted.
func formCohorts(specs []*rules.Spec) {
	for _, s := range specs { // a repeated transaction inserts the same specs with other seqs
		s.RowRef = 0
	}
	for len(specs) > 0 {
		n := 0
		for n < min(cohortMax, len(specs)) && specs[n].RunAt == 0 && specs[n].ResumedFrom.IsZero() &&
			specs[n].Seq == specs[0].Seq+int64(n) {
			n++
		}
		if n >= cohortMin {
			for _, s := range specs[:n] {
				s.RowRef = specs[0].Seq
			}
		}
		specs = specs[max(n, 1):]
	}
}

// together reports whether a job shares its row at the place that it comes from or goes to.
func together(m *scheduler.Move, p rules.Place) bool { return p == rules.InQueue && m.Turn.RowRef != 0 }

// putCohorts queues jobs that share rows.
func (t *tx) putCohorts(moves []scheduler.Move) {
	for i := 0; i < len(moves); {
		first := &moves[i].Turn
		if !together(&moves[i], moves[i].To) {
			i++
			continue
		}
		r, n := t.scratch.Reset(), 0
		for ; i < len(moves) && together(&moves[i], moves[i].To) && moves[i].Turn.RowRef == first.RowRef; i++ {
			m := &moves[i].Turn
			if n == cohortMax || *m != submitted(m, first.RowRef+int64(n), first) {
				t.err = fmt.Errorf("%w: job %s is not number %d of cohort %d", scheduler.ErrBadCall, m.Job, n, m.RowRef)
				return
			}
			r.Next()
			r.ID(m.Job.UUID)
			r.Int(int64(m.Lane))
			r.Int(int64(m.MaxAttempts))
			n++
		}
		all := ^int64(0)
		if n < cohortMax {
			all = 1<<n - 1
		}
		params := append([][]byte{wire.Int8(first.RowRef), wire.Instant(first.QueuedAt)}, r.Params()...)
		_ = t.write("queue", wire.Step{Stmt: putCohort}, append(params, wire.Int8(all))...) // kept in t.err
	}
}

// submitted is the turn of a job of a cohort.
func submitted(t *rules.Turn, seq int64, first *rules.Turn) rules.Turn {
	return rules.Turn{
		Job: t.Job, Lane: t.Lane, Seq: seq, MaxAttempts: t.MaxAttempts, Steps: 1, QueuedAt: first.QueuedAt,
		RowRef: first.RowRef,
	}
}

// takeFromCohorts takes jobs out of the rows that they share.
func (t *tx) takeFromCohorts(moves []scheduler.Move) {
	left := map[int64]int64{}
	for i := range moves {
		m := &moves[i]
		if !together(m, m.From) {
			continue
		}
		n := m.Turn.Seq - m.Turn.RowRef
		if n < 0 || n >= cohortMax || left[m.Turn.RowRef]>>n&1 == 1 {
			t.err = fmt.Errorf("take job %s from its cohort: %w", m.Turn.Job, scheduler.ErrMoved)
			return
		}
		left[m.Turn.RowRef] |= 1 << n
	}
	if len(left) == 0 {
		return
	}
	t.take(moves, checkPlaces, func(m *scheduler.Move) bool {
		spec := t.store.specs.Find(m.Turn.Job)
		return together(m, m.From) && (spec == nil || spec.Seq != m.Turn.Seq)
	}, bindPlace)
	r := t.scratch.Reset()
	for _, first := range slices.Sorted(maps.Keys(left)) {
		r.Next()
		r.Int(first)
		r.Int(left[first])
	}
	step := wire.Step{Stmt: takeFromCohorts, Rows: r, Guard: scheduler.ErrMoved}
	_ = t.write(takeVerb, step, wire.Int8(int64(len(left)))) // kept in t.err
}

// EachQueued implements scheduler.View.
func (v *view) EachQueued(_ context.Context, fn func(rules.Turn) error) error {
	var jobs, lanes, attempts wire.Row
	err := v.query("read queue", readCohorts, func(r *wire.Row) error {
		first := rules.Turn{RowRef: r.Int()}
		left := uint64(r.Int())
		first.QueuedAt = r.Instant()
		r.Array(&jobs)
		r.Array(&lanes)
		r.Array(&attempts)
		for seq := first.RowRef; left != 0; seq, left = seq+1, left>>1 {
			t := rules.Turn{
				Job: lessor.JobID{UUID: jobs.ID()}, Lane: rules.LaneID(lanes.Int()), MaxAttempts: int(attempts.Int()),
			}
			if left&1 == 0 {
				continue
			}
			if err := fn(submitted(&t, seq, &first)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return v.query("read queue", readQueue, func(r *wire.Row) error {
		var t rules.Turn
		queuedRow(decode(r), &t)
		return fn(t)
	})
}

// queuedRow is the turn of a job in the queue, with its cohort.
func queuedRow(c *row.Codec, t *rules.Turn) {
	row.Turn(c, t)
	row.Integer(c, "cohort", &t.RowRef)
}

// dropSpent removes cohorts that have no job left, if it is time to.
func (s *Store) dropSpent(c *wire.Conn, now lessor.Instant) error {
	if now.Sub(s.tidied.spent).Abs() < spentEvery {
		return nil
	}
	s.tidied.spent = now
	return unflushed(c, brief, func() { c.Add(wire.Step{Verb: "drop spent cohorts", Stmt: dropSpent}) })
}
