package fold_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"lessor"
	"lessor/internal/fold"
	"lessor/internal/lanes"
	"lessor/internal/rules"
)

const noon = lessor.Instant(1_700_000_000_000)

var acme = lessor.TenantID{UUID: lessor.UUID{1}}

var plain = rules.Lane{Tenant: acme, Class: "default", Type: "mail", Units: 2}

// node is a fold that packs its changes into a stream.
type node struct {
	*fold.Fold
	stream, n int64
}

func newNode(stream int64) *node {
	f := fold.New(func(lessor.TenantID) lanes.Policy { return lanes.Policy{Weight: 1} })
	f.Position = fold.Position{}
	f.AddLane(1, plain, false)
	return &node{Fold: f, stream: stream}
}

// commit packs the changes that fn makes.
func (n *node) commit(fn func()) fold.Change {
	n.Record(false)
	fn()
	n.n++
	return fold.Change{Stream: n.stream, N: n.n, Data: n.Recorded()}
}

func (n *node) follow(changes ...fold.Change) (fold.Followed, error) {
	named, err := n.Named(changes)
	if err != nil {
		return fold.Followed{}, err
	}
	return n.Follow(changes, named, noon)
}

func turn(seq int64) rules.Turn {
	return rules.Turn{
		Job: lessor.JobID{UUID: lessor.UUID{15: byte(seq)}}, Lane: 1, Seq: seq, MaxAttempts: 5, QueuedAt: noon,
	}
}

// grant gives the first turn to a worker.
func (n *node) grant(worker string) *rules.Held {
	pick, ok := n.Index.Next(&lanes.Filter{Usable: 100})
	if !ok {
		return nil
	}
	h := &rules.Held{
		ID: lessor.LeaseID{UUID: lessor.UUID{15: byte(pick.Turn.Seq)}}, Turn: n.Index.Take(pick), Worker: worker,
		Units: pick.Lane.Units, Tenant: pick.Lane.Tenant, Bound: true,
	}
	n.Grant(h, noon+60_000)
	return h
}

func TestFollowedFoldEqualsTheOther(t *testing.T) {
	a, b := newNode(1), newNode(2)
	var held *rules.Held
	changes := []fold.Change{
		a.commit(func() { a.Enqueue(turn(1)); a.Enqueue(turn(2)); a.Enqueue(turn(3)) }),
		a.commit(func() { held = a.grant("w"); a.Delay(noon + 5) }),
		a.commit(func() { a.Remove(turn(3)); a.ChangeSettings(); a.AskForEvents() }),
		a.commit(func() {
			if err := a.PublishEvent(&lessor.StreamEvent{JobID: turn(1).Job, TenantID: acme}); err != nil {
				t.Fatal(err)
			}
		}),
	}
	followed, err := b.follow(changes...)
	if err != nil {
		t.Fatalf("follow: %v", err)
	}
	if err := b.Differs(a.Fold); err != nil {
		t.Errorf("after the grant: %v", err)
	}
	if !followed.Settings || !followed.Followers || len(followed.Events) != 1 ||
		followed.Events[0].JobID != turn(1).Job {
		t.Errorf("followed is %+v, want settings, followers and one event", followed)
	}
	if b.DueAt != noon+5 || b.OthersAt != noon {
		t.Errorf("due at %v, followed at %v; want %v and %v", b.DueAt, b.OthersAt, noon+5, noon)
	}
	if got := b.Holds(held.Holder()); got != (fold.Holding{Leases: 1, Units: 2}) {
		t.Errorf("the worker holds %+v, want one lease of two units", got)
	}
	if ids, _ := b.TakeChecks(noon+60_000, 10); !slices.Equal(ids, []lessor.LeaseID{held.ID}) {
		t.Errorf("checks are due of %v, want %v", ids, held.ID)
	}
	if _, err := b.follow(a.commit(func() { a.Free(held); a.Enqueue(held.Turn) })); err != nil {
		t.Fatalf("follow the end: %v", err)
	}
	if err := b.Differs(a.Fold); err != nil {
		t.Errorf("after the end: %v", err)
	}
}

// TestGrantIsAppliedAfterItsSubmission has a third node read the grant of one node before the submission of another.
func TestGrantIsAppliedAfterItsSubmission(t *testing.T) {
	a, b := newNode(1), newNode(2)
	queued := a.commit(func() { a.Enqueue(turn(1)) })
	if _, err := b.follow(queued); err != nil {
		t.Fatal(err)
	}
	taken := b.commit(func() { b.grant("w") })
	for _, order := range [][]fold.Change{{queued, taken}, {taken, queued}} {
		c := newNode(3)
		if _, err := c.follow(order...); err != nil {
			t.Fatalf("follow: %v", err)
		}
		if err := c.Differs(b.Fold); err != nil {
			t.Error(err)
		}
	}
}

func TestEndedStreamIsForgotten(t *testing.T) {
	a, b := newNode(1), newNode(2)
	last := a.commit(func() { a.Enqueue(turn(1)) })
	if _, err := b.follow(last, fold.Change{Stream: 1, N: fold.Ended}); err != nil {
		t.Fatal(err)
	}
	if len(b.Position) != 0 {
		t.Fatalf("the position still has a stream that has ended: %v", b.Position)
	}
}

func TestStaleFoldIsNoticed(t *testing.T) {
	a := newNode(1)
	queued, removed := a.commit(func() { a.Enqueue(turn(1)) }), a.commit(func() { a.Remove(turn(1)) })
	a.Record(true)
	a.Enqueue(turn(2))
	sole := fold.Change{Stream: 1, N: 1, Data: a.Recorded()}
	far := a.commit(func() { a.Enqueue(rules.Turn{Lane: 9, Seq: 4}) })
	far.N = 1
	for _, c := range []struct {
		name    string
		changes []fold.Change
	}{
		{"a gap", []fold.Change{removed}},
		{"a gap before a change that fits", []fold.Change{{Stream: 1, N: 2, Data: queued.Data}}},
		{"a turn that was never queued", []fold.Change{{Stream: 1, N: 1, Data: removed.Data}}},
		{"an unknown step", []fold.Change{{Stream: 1, N: 1, Data: []byte{200}}}},
		{"a change that was cut", []fold.Change{{Stream: 1, N: 1, Data: queued.Data[:5]}}},
		{"a sole node's change", []fold.Change{sole}},
		{"an unknown lane", []fold.Change{far}},
	} {
		if _, err := newNode(2).follow(c.changes...); !errors.Is(err, fold.ErrStale) {
			t.Errorf("%s: %v, want ErrStale", c.name, err)
		}
	}
}

func TestClockThatWasSetBackMakesChecksDue(t *testing.T) {
	a := newNode(1)
	a.NoteClock(noon)
	a.PlanCheck(lessor.LeaseID{}, noon+60_000)
	a.NoteClock(noon - 500)
	if a.CheckDue(noon-500, 0) {
		t.Error("a check is due although the clock only jittered")
	}
	a.NoteClock(noon - 3_600_000)
	if !a.CheckDue(noon-3_600_000, 0) {
		t.Error("no check is due after the clock was set back by an hour")
	}
}

// TestSweepGoesOnWhileChecksAreDue: a pause follows only the sweep that leaves nothing to check.
func TestSweepGoesOnWhileChecksAreDue(t *testing.T) {
	a := newNode(1)
	a.NoteClock(noon)
	for i := range 5 {
		a.PlanCheck(lessor.LeaseID{UUID: lessor.UUID{15: byte(i)}}, noon)
	}
	for now := noon; now < noon+3; now++ {
		if !a.CheckDue(now, time.Second) {
			t.Errorf("no check is due after %d sweeps of two, want one", now-noon)
		}
		a.TakeChecks(now, 2)
	}
	a.PlanCheck(lessor.LeaseID{}, noon)
	if a.CheckDue(noon+251, time.Second) || !a.CheckDue(noon+252, time.Second) {
		t.Error("the next sweep does not follow a quarter of a second after the last")
	}
}

// TestLeasesThatEndedAreNotChecked: a sweep returns only leases that live, as far as the node knows.
func TestLeasesThatEndedAreNotChecked(t *testing.T) {
	a := newNode(1)
	var live lessor.LeaseID
	for i := range 5000 {
		a.Enqueue(turn(1))
		pick, _ := a.Index.Next(&lanes.Filter{Usable: 100})
		h := &rules.Held{
			ID: lessor.LeaseID{UUID: lessor.UUID{14: byte(i >> 8), 15: byte(i)}}, Turn: a.Index.Take(pick), Worker: "w",
		}
		if a.Grant(h, noon+60_000); i == 4000 {
			live = h.ID
		} else {
			a.Free(h)
		}
	}
	for _, want := range [][]lessor.LeaseID{{live}, nil} {
		if ids, _ := a.TakeChecks(noon+60_000, 1); !slices.Equal(ids, want) {
			t.Errorf("checks are due of %v, want of %v", ids, want)
		}
	}
}

func TestBlocksHoldTurnsBack(t *testing.T) {
	a := newNode(1)
	lane := plain
	lane.Definition = "d"
	a.AddLane(2, lane, false)
	job := turn(1)
	job.Lane = 2
	a.Enqueue(job)
	open := rules.Circuit{Definition: "d", Tenant: acme, State: lessor.CircuitOpen, RetryAt: noon + 10}
	if !a.SetCircuit(&open) || a.Index.Eligible(2, 1) || a.TrialAt != noon+10 {
		t.Error("an open circuit does not block, or its trial is not planned")
	}
	if len(a.Trials(noon)) != 0 || !slices.Equal(a.Cooling(noon), []string{"d"}) ||
		!slices.Equal(a.Trials(noon+10), []string{"d"}) {
		t.Error("a trial is not due exactly when the circuit has cooled")
	}
	for _, try := range []bool{true, false} {
		if a.OpenTrials(func(string) bool { return try }); a.Index.Eligible(2, 1) != try {
			t.Errorf("a job may be granted: %t, although its circuit may be tried: %t", !try, try)
		}
	}
	a.TakeWoken()
	if a.WakeTrials(noon+9) || !a.WakeTrials(noon+10) || !a.TakeWoken().All {
		t.Error("requests are not woken exactly when a trial is due")
	}
	a.BlockAll(nil)
	if !a.Index.Eligible(2, 1) || a.Blocked("d").Definition != "" {
		t.Error("the definition is blocked although nothing blocks it")
	}
}

// TestMessagesOfOthersComeInAnyOrder has a node read the changes of two others in the wrong order: a message that was
// sent after others were seen is not hidden.
func TestMessagesOfOthersComeInAnyOrder(t *testing.T) {
	a, b, c := newNode(1), newNode(2), newNode(3)
	job := turn(1).Job
	one := a.commit(func() { a.Message(job, 1, nil, noon) })
	if _, err := b.follow(one); err != nil {
		t.Fatal(err)
	}
	seen := b.commit(func() { b.Seen(job, 1) })
	two := a.commit(func() { a.Message(job, 2, nil, noon) })
	waiting := b.commit(func() { b.Wait(1) })
	if _, err := c.follow(one, two); err != nil || c.Unseen(job) != 2 {
		t.Fatalf("unseen %d, %v", c.Unseen(job), err)
	}
	if _, err := c.follow(seen, waiting); err != nil || c.Unseen(job) != 2 || c.Waiting != 1 {
		t.Errorf("unseen %d, waiting %d, %v", c.Unseen(job), c.Waiting, err)
	}
	if b.Unseen(job) != 0 {
		t.Errorf("unseen %d after all were", b.Unseen(job))
	}
}
