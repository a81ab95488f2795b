package rules

import (
	"testing"
	"time"

	"lessor"
)

// turn is that of a job which was leased twice, then queued again a minute after the start.
var turn = Turn{
	Job: jobID(1), Lane: 7, Seq: 9, Attempt: 2, MaxAttempts: 5, Interruptions: 1, Fence: 77, Steps: 6,
	QueuedAt: after(time.Minute),
}

// kept is a job whose payload has not been stripped.
var kept = &Spec{Payload: []byte(`{}`)}

func queuedJob() *Standing { return &Standing{Spec: kept, Place: InQueue, Turn: turn} }

func waitingJob(state lessor.State) *Standing {
	return &Standing{Spec: kept, Place: Delayed, Turn: turn, Wait: Wait{Until: after(time.Hour), State: state}}
}

func heldJob(changes ...func(*Held)) *Standing {
	h := lease(changes...)
	return &Standing{Spec: kept, Place: Leased, Turn: h.Turn, Held: h}
}

func endedJob(state lessor.State) *Standing {
	a := Attempt{Turn: turn, Lease: leaseID(3), Worker: "w1", EndedAt: start, Outcome: Outcome(state)}
	return &Standing{Spec: kept, Place: Ended, Turn: turn, Done: &Done{State: state, Attempt: a}}
}

func running(h *Held) { h.FirstBeatAt = after(time.Second) }

func cancelRequested(h *Held) { h.CancelAt = after(2 * time.Second) }

func TestCancelEndsAWaitingJobAtOnce(t *testing.T) {
	now := after(2 * time.Minute)
	for _, c := range []struct {
		name string
		job  *Standing
		from lessor.State
	}{
		{"queued", queuedJob(), lessor.Queued},
		{"waiting for its time", waitingJob(lessor.Queued), lessor.Queued},
		{"waiting for a retry after a failure", waitingJob(lessor.Failed), lessor.Failed},
		{"waiting for a retry after an expiry", waitingJob(lessor.Expired), lessor.Expired},
	} {
		for _, force := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				got, err := Cancel(c.job, force, "olga", now)
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				after := turn
				after.Steps = 7
				same(t, "the change", got, Change{
					Next: &Next{Place: Ended, Done: &Done{State: lessor.Cancelled, Attempt: Attempt{
						Turn: after, EndedAt: now, Outcome: OutcomeCancelled, Reason: "cancelled", Actor: "olga",
					}}},
					Notes: []Note{{
						Job: jobID(1), Fence: 77, At: now, From: c.from, To: lessor.Cancelled, Actor: "olga",
						Reason:  "cancelled",
						Attempt: 2, QueuedAt: turn.QueuedAt,
					}},
				})
			})
		}
	}
}

func TestCancelMarksAHeldJobOnce(t *testing.T) {
	now := after(3 * time.Second)
	for _, c := range []struct {
		name  string
		job   *Standing
		state lessor.State
		marks bool
	}{
		{"leased", heldJob(), lessor.Leased, true},
		{"running", heldJob(running), lessor.Running, true},
		{"running, asked before", heldJob(running, cancelRequested), lessor.Running, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Cancel(c.job, false, "olga", now)
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			want, at := Change{}, after(2*time.Second)
			if c.marks {
				at = now
				want = Change{CancelLease: true, Notes: []Note{{
					Job: jobID(1), Fence: int64(start), Held: true, At: now, From: c.state, To: c.state,
					Actor: "olga", Reason: "cancel_requested", Lease: leaseID(1), Attempt: 1,
				}}}
			}
			same(t, "the change", got, want)
			same(t, "when the lease says that a cancel was asked for", c.job.Held.CancelAt, at)
		})
	}
}

func TestForcedCancelTakesTheLeaseNow(t *testing.T) {
	now := after(3 * time.Second)
	for _, c := range []struct {
		name  string
		job   *Standing
		notes int
		steps int // of the record after it
	}{
		{"leased", heldJob(), 1, 4},
		{"running", heldJob(running), 1, 5},
		{"running, asked before", heldJob(running, cancelRequested), 0, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Cancel(c.job, true, "olga", now)
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			if got.CancelLease || got.Next == nil || got.Next.Done == nil {
				t.Fatalf("the lease was not ended: %+v", got)
			}
			d := got.Next.Done
			same(t, "the state", d.State, lessor.Cancelled)
			same(t, "reason, actor and end", [3]any{d.Attempt.Reason, d.Attempt.Actor, d.Attempt.EndedAt},
				[3]any{"cancelled_by_force", "olga", now})
			same(t, "the lease that ended", d.Attempt.Lease, leaseID(1))
			same(t, "how many requests are noted", len(got.Notes), c.notes)
			same(t, "the steps", d.Attempt.Turn.Steps, c.steps)
		})
	}
}

func TestCancelOfAnEndedJob(t *testing.T) {
	for state, detail := range map[lessor.State]string{
		lessor.Completed: "the job is completed and cannot be cancelled",
		lessor.Failed:    "the job is failed and cannot be cancelled",
		lessor.Expired:   "the job is expired and cannot be cancelled",
		lessor.Cancelled: "", // again: answered the same
	} {
		for _, force := range []bool{false, true} {
			got, err := Cancel(endedJob(state), force, "olga", start)
			same(t, "the change of a job that is "+string(state), got, Change{})
			if detail == "" {
				if err != nil {
					t.Errorf("a second cancel (force %v) was refused: %v", force, err)
				}
				continue
			}
			same(t, "the refusal", err, error(&lessor.Error{Code: lessor.CodeConflict, Detail: detail}))
		}
	}
}

func TestCancelOfAJobInNoPlaceIsNotFound(t *testing.T) {
	_, err := Cancel(&Standing{}, false, "olga", start)
	refused(t, err, lessor.CodeJobNotFound)
}

func TestRetryQueuesAJobThatEndedBadly(t *testing.T) {
	now := after(time.Hour)
	withTurn := func(s *Standing, attempt, most int) *Standing {
		s.Turn.Attempt, s.Turn.MaxAttempts = attempt, most
		return s
	}
	unleased := endedJob(lessor.Cancelled)
	unleased.Done.Attempt.Lease = lessor.LeaseID{}
	for _, c := range []struct {
		name    string
		job     *Standing
		from    lessor.State
		most    int
		attempt bool // the last attempt is kept among those that ended
	}{
		{"failed for good", withTurn(endedJob(lessor.Failed), 5, 5), lessor.Failed, 6, true},
		{"failed for good with attempts left", withTurn(endedJob(lessor.Failed), 2, 5), lessor.Failed, 5, true},
		{"failed with one attempt left", withTurn(endedJob(lessor.Failed), 4, 5), lessor.Failed, 5, true},
		{"expired for good", withTurn(endedJob(lessor.Expired), 50, 50), lessor.Expired, 51, true},
		{"cancelled under a lease", withTurn(endedJob(lessor.Cancelled), 1, 1), lessor.Cancelled, 2, true},
		{"cancelled without a lease", withTurn(unleased, 0, 1), lessor.Cancelled, 1, false},
		{"waiting after a failure", withTurn(waitingJob(lessor.Failed), 2, 5), lessor.Failed, 5, false},
		{"waiting after an expiry", withTurn(waitingJob(lessor.Expired), 2, 5), lessor.Expired, 5, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Retry(c.job, "olga", now)
			if err != nil {
				t.Fatalf("refused: %v", err)
			}
			next := c.job.Turn
			next.MaxAttempts, next.QueuedAt, next.Steps = c.most, now, 7
			if c.job.Place == Ended {
				next.Interruptions = 0 // or the next release would fail it again
			}
			want := Change{
				Next: &Next{Place: InQueue, Turn: next},
				Notes: []Note{{
					Job: jobID(1), Fence: 77, At: now, From: c.from, To: lessor.Queued, Actor: "olga",
					Reason: "retried", Attempt: next.Attempt,
				}},
			}
			if c.attempt {
				want.Next.Attempt = &c.job.Done.Attempt
			}
			same(t, "the change", got, want)
		})
	}
}

func TestRetryOfAJobThatWasCancelledBeforeItsTimeWaitsForIt(t *testing.T) {
	s := endedJob(lessor.Cancelled)
	s.Spec.RunAt = after(2 * time.Hour)
	got, err := Retry(s, "olga", after(time.Hour))
	if err != nil || got.Next.Place != Delayed {
		t.Fatalf("it goes to %+v (%v), want to wait", got.Next, err)
	}
	same(t, "the wait", got.Next.Wait, Wait{Until: after(2 * time.Hour), State: lessor.Queued})
}

func TestRetryWithoutThePayloadIsAConflict(t *testing.T) {
	s := endedJob(lessor.Failed)
	s.Spec = &Spec{}
	_, err := Retry(s, "olga", start)
	refused(t, err, lessor.CodeConflict)
}

func TestRetryOfAnyOtherJobIsAConflict(t *testing.T) {
	for name, c := range map[string]struct {
		job    *Standing
		detail string
	}{
		"queued":               {queuedJob(), "the job is queued and cannot be retried"},
		"waiting for its time": {waitingJob(lessor.Queued), "the job is queued and cannot be retried"},
		"leased":               {heldJob(), "the job is leased and cannot be retried"},
		"running":              {heldJob(running), "the job is running and cannot be retried"},
		"completed":            {endedJob(lessor.Completed), "the job is completed and cannot be retried"},
	} {
		got, err := Retry(c.job, "olga", start)
		same(t, "the change of a job that is "+name, got, Change{})
		same(t, "the refusal of a job that is "+name, err,
			error(&lessor.Error{Code: lessor.CodeConflict, Detail: c.detail}))
	}
}
