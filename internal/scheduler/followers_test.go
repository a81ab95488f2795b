package scheduler_test

import (
	"math"
	"testing"
	"time"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store/memory"
)

// TestReaderOfRecordsMissesNoneUnnoticed follows the records on one node and submits a job to another, after a clock
// leapt or one of the nodes stood still: for less than the 30 s after which a node reads all tables again. The reader
// gets the record or is told of a gap.
func TestReaderOfRecordsMissesNoneUnnoticed(t *testing.T) {
	for _, c := range []struct {
		name   string
		submit func(r *reading) lessor.Job
		gap    bool
	}{
		{"as usual", func(r *reading) lessor.Job {
			r.pass(9, r.here, r.there)
			return r.submit(r.there)
		}, false},
		{"the store's clock leaps forward", func(r *reading) lessor.Job {
			r.pass(9, r.here, r.there)
			r.ahead = 28 * time.Second
			r.step(r.there)
			return r.submit(r.there)
		}, false},
		{"the store's clock leaps forward, and the other node is replaced", func(r *reading) lessor.Job {
			r.pass(9, r.here, r.there)
			r.ahead = 28 * time.Second
			r.there = r.open("there again")
			return r.submit(r.there)
		}, false},
		{"the other node stands still", func(r *reading) lessor.Job {
			r.pass(9, r.here, r.there)
			r.ask()
			r.pass(14, r.here)
			r.ask()
			r.pass(14, r.here)
			return r.submit(r.there)
		}, false},
		{"the reader's node stands still", func(r *reading) lessor.Job {
			r.pass(9, r.here, r.there)
			r.pass(28, r.there)
			job := r.submit(r.there)
			r.step(r.here)
			return job
		}, true},
		{"the reader's node stands still while it asks", func(r *reading) (job lessor.Job) {
			r.pass(9, r.here, r.there)
			r.meanwhile.do = func() {
				r.pass(28, r.there)
				job = r.submit(r.there)
			}
			r.ask()
			return job
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReading(t)
			job := c.submit(r)
			r.ask()
			r.step(r.here)
			got := r.reader.Take(math.MaxInt)
			found := false
			for _, e := range got {
				found = found || e.Event.JobID == job.ID
			}
			if gap := len(got) > 0 && got[0].Gap; gap != c.gap || found == c.gap {
				t.Errorf("a gap: %t, the job's record: %t; want a gap: %t, the record: %t", gap, found, c.gap, !c.gap)
			}
		})
	}
}

// reading is a reader on one of two nodes, both of which are stepped.
type reading struct {
	stepper
	here, there *scheduler.Stepped
	db          *memory.Database
	ahead       time.Duration // of the store's clock
	meanwhile   *between
	reader      *scheduler.Follower
}

func newReading(t *testing.T) *reading {
	r := &reading{
		stepper:   stepper{t: t, ctx: t.Context(), clock: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)},
		meanwhile: &between{node: "here", point: "commit"},
	}
	r.db = memory.New(memory.Options{
		Clock: func() lessor.Instant { return lessor.At(r.clock.Add(r.ahead)) }, Stepper: r.meanwhile,
	})
	r.here, r.there = r.open("here"), r.open("there")
	r.answer(r.here, "subscribe", func() (err error) {
		r.reader, err = r.here.Subscribe(r.ctx, anybody, 0)
		return err
	})
	r.step(r.there)
	if got := r.reader.Take(math.MaxInt); len(got) > 0 {
		t.Fatalf("the reader begins with %+v", got)
	}
	return r
}

// open starts a node that has read the tables.
func (r *reading) open(name string) *scheduler.Stepped {
	r.t.Helper()
	n := scheduler.NewStepped(r.db.Open(name), config(), func() time.Time { return r.clock })
	n.ActAsOneOfSeveral() // a node that believes it is alone publishes no records
	r.step(n)
	return n
}

// ask has the reader's node ask the other for its records, as it does every ten seconds.
func (r *reading) ask() {
	r.t.Helper()
	r.answer(r.here, "ask", func() error {
		r.here.Sample(r.ctx)
		return nil
	})
}

// pass lets seconds go by on all clocks. Only some nodes do something in that time.
func (r *reading) pass(seconds int, nodes ...*scheduler.Stepped) {
	r.t.Helper()
	for range seconds {
		r.clock = r.clock.Add(time.Second)
		for _, n := range nodes {
			r.step(n)
		}
	}
}
