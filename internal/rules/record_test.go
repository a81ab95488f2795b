package rules

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"lessor"
)

// action is one thing that can happen in a machine, with how often it does.
type action struct {
	often int
	do    func(*machine)
}

// life is what happens to jobs in a calm world.
var life = []action{
	{1, func(m *machine) {}},
	{6, (*machine).submit},
	{14, (*machine).grant},
	{14, (*machine).beat},
	{14, (*machine).end},
	{6, (*machine).cancel},
	{6, (*machine).retry},
	{6, (*machine).answer},
	{2, (*machine).watch},
	{12, func(m *machine) { m.pass(m.millis("pass", 0, 3*time.Second)) }},
	{4, func(m *machine) { m.pass(m.millis("pass long", 0, 20*time.Second)) }},
}

// trouble is what the world does to us: stalls, restarts, steps of the clock.
var trouble = []action{
	{2, func(m *machine) { m.gap(m.millis("short gap", 0, time.Second), false) }},
	{2, func(m *machine) { m.gap(m.millis("gap", time.Second, 30*time.Second), false) }},
	{1, func(m *machine) { m.gap(m.millis("restart", 0, 5*time.Second), true) }},
	{2, func(m *machine) { m.step(m.millis("small step", -time.Second, time.Second)) }},
	{1, func(m *machine) { m.step(m.millis("step forward", time.Second+time.Millisecond, time.Minute)) }},
	{1, func(m *machine) { m.step(-m.millis("step back", time.Second+time.Millisecond, time.Minute)) }},
}

// live plays a random history of up to n actions and looks at every job after each.
func (m *machine) live(n int, look func(*job), worlds ...[]action) {
	var all []func(*machine)
	for _, a := range slices.Concat(worlds...) {
		all = append(all, slices.Repeat([]func(*machine){a.do}, a.often)...)
	}
	for range n {
		all[m.number("action", 0, len(all)-1)](m)
		for _, j := range m.jobs {
			m.bounded(j)
			if j.changed {
				look(j)
				j.changed = false
			}
		}
	}
}

// bounded checks that a job has had no more attempts and interruptions than it may.
func (m *machine) bounded(j *job) {
	turn := j.standing().Turn
	if turn.Attempt != j.grants-j.returned {
		m.Fatalf("job %s was granted %d times, %d of them given back, and counts %d attempts", j.spec.ID, j.grants,
			j.returned, turn.Attempt)
	}
	if most := j.spec.MaxAttempts + j.retried; turn.Attempt > most {
		m.Fatalf("job %s had %d attempts; %d are allowed and operators added %d", j.spec.ID, turn.Attempt,
			j.spec.MaxAttempts, j.retried)
	}
	if most := m.retries.MaxInterruptions + 1 + j.retried; turn.Interruptions > most {
		m.Fatalf("job %s was interrupted %d times, at most %d are possible", j.spec.ID, turn.Interruptions, most)
	}
}

// TestRecordOnlyGrows checks, for random histories, that at every commit a job's record begins with the whole record
// before, replays to the job's state, has as many entries as its row carries steps, and equals what followers got.
func TestRecordOnlyGrows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(rt)
		m.live(400, m.recorded, life, trouble)
	})
}

func (m *machine) recorded(j *job) {
	st := j.standing()
	record := Record(&History{Standing: *st, Attempts: j.attempts, Notes: j.notes})
	if len(record) < len(j.record) || len(j.record) > 0 && !reflect.DeepEqual(record[:len(j.record)], j.record) {
		m.Fatalf("the record of job %s was altered (-before +now):\n%s", j.spec.ID, cmp.Diff(j.record, record))
	}
	if !reflect.DeepEqual(record, j.published) {
		m.Fatalf("the record of job %s is not what followers got (-published +record):\n%s", j.spec.ID,
			cmp.Diff(j.published, record))
	}
	if got := Replay(record); got != st.State() {
		m.Fatalf("the record of job %s replays to %q, but the job is %q", j.spec.ID, got, st.State())
	}
	steps := st.Turn.Steps
	if st.Held != nil {
		steps = st.Held.Steps()
	}
	if steps != len(record) {
		m.Fatalf("job %s carries %d steps, its record has %d entries:\n%s",
			j.spec.ID, steps, len(record), lines(record))
	}
	from := lessor.State("")
	for i, e := range record {
		if e.Seq != i+1 || e.From == nil != (i == 0) || e.From != nil && *e.From != from {
			m.Fatalf("entry %d of job %s does not follow the one before:\n%s", i+1, j.spec.ID, lines(record))
		}
		from = e.To
	}
	j.record = record
}

func lines(record []lessor.Event) string {
	s := ""
	for _, e := range record {
		from := lessor.State("-")
		if e.From != nil {
			from = *e.From
		}
		s += fmt.Sprintf("%d %s → %s (%s, %s, attempt %d)\n", e.Seq, from, e.To, e.Reason, e.Actor, e.Attempt)
	}
	return s
}

// TestRecordHasAWholeLife reads the record of one job through everything that can happen to it.
func TestRecordHasAWholeLife(t *testing.T) {
	now := start
	spec := &Spec{Payload: []byte(`{}`), ID: jobID(1), TraceID: "abc", Actor: "anna", CreatedAt: start}
	st := Standing{Spec: spec, Place: InQueue, Turn: Turn{Job: jobID(1), MaxAttempts: 2, Steps: 1, QueuedAt: start}}
	h := History{}
	tick := func() lessor.Instant { now = now.Add(time.Second); return now }
	grant := func(n byte) { st.Place, st.Held = Leased, Grant(leaseID(n), st.Turn, spec, "w1", time.Minute, tick()) }
	leave := func(next Next) {
		if next.Attempt != nil {
			h.Attempts = append(h.Attempts, *next.Attempt)
		}
		st = Standing{Spec: spec, Place: next.Place, Turn: next.Turn, Wait: next.Wait, Done: next.Done}
		if next.Done != nil {
			st.Turn = next.Done.Attempt.Turn
		}
	}
	conclude := func(e End) {
		next, err := Conclude(st.Held, e, usual, tick(), 0)
		if err != nil {
			t.Fatal(err)
		}
		leave(next)
	}
	alter := func(ch Change, err error) {
		if err != nil {
			t.Fatal(err)
		}
		h.Notes = append(h.Notes, ch.Notes...)
		if ch.Next != nil {
			leave(*ch.Next)
		}
	}

	grant(1)
	conclude(ends["released"])
	grant(2)
	if err := Beat(st.Held, by("w1"), 0, tick(), served(now)); err != nil {
		t.Fatal(err)
	}
	conclude(ends["failed"])
	st.Turn, st.Place = Promote(st.Turn, st.Wait, tick()), InQueue
	grant(3)
	alter(Cancel(&st, false, "olga", tick()))
	conclude(ends["lapsed"])
	alter(Retry(&st, "olga", tick()))
	alter(Cancel(&st, false, "olga", tick()))

	h.Standing = st
	want := `1 - → queued (submitted, anna, attempt 0)
2 queued → leased (granted, w1, attempt 1)
3 leased → queued (released, w1, attempt 1)
4 queued → leased (granted, w1, attempt 1)
5 leased → running (first_heartbeat, w1, attempt 1)
6 running → failed (failed, w1, attempt 1)
7 failed → queued (retry_due, scheduler, attempt 1)
8 queued → leased (granted, w1, attempt 2)
9 leased → leased (cancel_requested, olga, attempt 2)
10 leased → cancelled (lease_expired, scheduler, attempt 2)
11 cancelled → queued (retried, olga, attempt 2)
12 queued → cancelled (cancelled, olga, attempt 2)
`
	record := Record(&h)
	same(t, "the record", lines(record), want)
	for _, e := range record {
		if e.TraceID != "abc" {
			t.Errorf("entry %d has trace id %q, want that of the submission", e.Seq, e.TraceID)
		}
		if leased := e.LeaseID != nil; leased != (e.Fence != nil) ||
			leased != slices.Contains([]int{2, 3, 4, 5, 6, 8, 9, 10}, e.Seq) {
			t.Errorf("entry %d (%s) names lease %v with fence %v", e.Seq, e.Reason, e.LeaseID, e.Fence)
		}
	}
}

func TestEmptyRecordReplaysToNothing(t *testing.T) {
	if got := Replay(nil); got != "" {
		t.Errorf("no record replays to %q", got)
	}
}
