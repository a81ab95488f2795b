package rules

import (
	"strings"
	"testing"
	"time"

	"lessor"
)

func TestRunStatusFollowsFromThePlace(t *testing.T) {
	spec := &Spec{
		ID: lessor.JobID{UUID: lessor.UUID{1}}, Lane: Lane{Tenant: tenantID(4), Definition: "ledger.nightly"},
		TraceID: "trace",
	}
	run := func(status lessor.RunStatus) lessor.Run {
		return lessor.Run{
			RunID: spec.ID, JobID: "ledger.nightly", TenantID: tenantID(4), Status: status,
			StartedAt: after(0), Attempts: 2, TraceID: "trace",
		}
	}
	ended := func(r lessor.Run, ref lessor.LeaseID) lessor.Run {
		r.EndedAt = after(time.Minute)
		if !ref.IsZero() {
			r.LastErrorRef = ref.String()
		}
		return r
	}
	unclaimed := func(status lessor.RunStatus) lessor.Run {
		r := run(status)
		r.StartedAt = 0
		return r
	}
	turn := Turn{Attempt: 2}
	done := func(s lessor.State, o Outcome) *Done {
		return &Done{State: s, Attempt: Attempt{Lease: leaseNo(3), Outcome: o, EndedAt: after(time.Minute)}}
	}
	for name, c := range map[string]struct {
		standing Standing
		want     lessor.Run
	}{
		"claimed": {Standing{Place: Leased, Held: &Held{IssuedAt: after(0)}}, run(lessor.RunClaimed)},
		"running": {Standing{
			Place: Leased, StartedAt: after(0),
			Held: &Held{IssuedAt: after(time.Second), Life: Life{FirstBeatAt: 1}},
		}, run(lessor.RunRunning)},
		"never claimed":          {Standing{Place: InQueue}, unclaimed(lessor.RunQueued)},
		"never claimed, delayed": {Standing{Place: Delayed}, unclaimed(lessor.RunQueued)},
		"cancelled before its first claim": {
			Standing{Place: Ended, Done: done(lessor.Cancelled, OutcomeCancelled)},
			ended(unclaimed(lessor.RunFailed), lessor.LeaseID{}),
		},
		"retrying": {Standing{Place: Delayed, StartedAt: after(0)}, run(lessor.RunRetrying)},
		"completed": {
			Standing{Place: Ended, StartedAt: after(0), Done: done(lessor.Completed, OutcomeCompleted)},
			ended(run(lessor.RunSuccess), lessor.LeaseID{}),
		},
		"completed after a failure": {
			Standing{
				Place: Ended, StartedAt: after(0), ErrorLease: leaseNo(2),
				Done: done(lessor.Completed, OutcomeCompleted),
			}, ended(run(lessor.RunSuccess), leaseNo(2)),
		},
		"failed": {Standing{
			Place: Ended, StartedAt: after(0), ErrorLease: leaseNo(2),
			Done: done(lessor.Failed, OutcomeFailed),
		}, ended(run(lessor.RunFailed), leaseNo(3))},
		"expired": {
			Standing{Place: Ended, StartedAt: after(0), Done: done(lessor.Expired, OutcomeExpired)},
			ended(run(lessor.RunFailed), leaseNo(3)),
		},
		"refused at the grant": {
			Standing{Place: Ended, Done: &Done{State: lessor.Failed, Attempt: Attempt{
				Turn: Turn{Job: spec.ID}, Outcome: OutcomeFailed, EndedAt: after(time.Minute),
			}}}, ended(unclaimed(lessor.RunFailed), lessor.LeaseID(spec.ID)),
		},
		"cancelled": {
			Standing{Place: Ended, StartedAt: after(0), Done: done(lessor.Cancelled, OutcomeCancelled)},
			ended(run(lessor.RunFailed), lessor.LeaseID{}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.standing.Spec, c.standing.Turn = spec, turn
			got, ran := RunOf(&c.standing)
			if !ran {
				t.Fatal("it did not run")
			}
			same(t, "run", got, c.want)
		})
	}
	if _, ran := RunOf(&Standing{Spec: &Spec{ID: spec.ID}, Place: InQueue}); ran {
		t.Error("a plain job that was never claimed has a run")
	}
	plain := &Standing{Spec: &Spec{ID: spec.ID}, Place: Delayed, StartedAt: 1}
	if got, _ := RunOf(plain); got.JobID != spec.ID.String() {
		t.Errorf("a plain job's jobId is %s", got.JobID)
	}
}

func TestErrorOfAttempt(t *testing.T) {
	a := &Attempt{
		Turn: Turn{Job: lessor.JobID{UUID: lessor.UUID{1}}, Attempt: 2}, Lease: leaseNo(3),
		Outcome: OutcomeFailed, Reason: "failed", Error: "disk", EndedAt: after(0),
	}
	got, failed := ErrorOf(a)
	same(t, "error", got, lessor.RunError{
		Ref: leaseNo(3).String(), RunID: a.Turn.Job, Attempt: 2, Code: "failed",
		Message: "disk", At: after(0),
	})
	a.Outcome, a.Reason, a.Error = OutcomeExpired, ReasonLeaseExpired, ""
	if got, _ := ErrorOf(a); !failed || got.Message != ReasonLeaseExpired {
		t.Errorf("an expiry: %+v", got)
	}
	a.Outcome = OutcomeCompleted
	if _, failed := ErrorOf(a); failed {
		t.Error("a success has an error")
	}
}

func TestCircuitRunIsOverAtItsTick(t *testing.T) {
	row := &TickRow{
		Definition: "ledger.nightly", Tenant: tenantID(4), At: after(0),
		Run: lessor.JobID{UUID: lessor.UUID{9}},
	}
	same(t, "run", CircuitRun(row, "trace"), lessor.Run{
		RunID: row.Run, JobID: "ledger.nightly", TenantID: tenantID(4), Status: lessor.RunCircuitOpen,
		StartedAt: after(0), EndedAt: after(0), TraceID: "trace",
	})
}

func TestRunAndTickFilters(t *testing.T) {
	for want, f := range map[string]lessor.RunFilter{
		"": {
			Limit: 1, Status: lessor.RunRetrying, JobID: "abc",
			Trace: strings.Repeat("a", 8),
		},
		"limit: must be 1 to 1000, not 0": {},
		"jobId: must be 3 to 120 characters long, not 2": {
			Limit: 1,
			JobID: "ab",
		},
		"traceId: must be 8 to 120 characters long, not 7": {
			Limit: 1,
			Trace: "abcdefg",
		},
		`status: must be QUEUED, CLAIMED, RUNNING, RETRYING, SUCCESS, FAILED or CIRCUIT_OPEN, not "DONE"`: {
			Limit:  1,
			Status: "DONE",
		},
	} {
		same(t, "refusal", firstField(CheckRuns(f)), want)
	}
	at, err := CheckTicks(lessor.TickFilter{Limit: 1, Cursor: after(0).String()})
	if err != nil || at != after(0) {
		t.Errorf("cursor: %v, %v", at, err)
	}
	for want, f := range map[string]lessor.TickFilter{
		"":                                {Limit: 1, From: after(0), To: after(0)},
		"limit: must be 1 to 1000, not 0": {},
		"to: must not be before from (" + after(0).String() + ")": {Limit: 1, From: after(0), To: after(0) - 1},
		"cursor: is not one that this list gave":                  {Limit: 1, Cursor: "x"},
	} {
		_, err := CheckTicks(f)
		same(t, "refusal", firstField(err), want)
	}
	for n, ok := range map[int]bool{0: false, 1: true, 100: true, 101: false} {
		if err := CheckCount(n); (err == nil) != ok {
			t.Errorf("%d: %v", n, err)
		}
	}
	same(t, "wrong field", firstField(WrongField("a", "is %d", 1)), "a: is 1")
}

func TestRejectedJobWasNeverGranted(t *testing.T) {
	turn := Turn{Job: jobID(1), Attempt: 1, Fence: 5, Steps: 4, QueuedAt: after(0)}
	c := Reject(turn, &lessor.Error{Code: lessor.CodeInvalidValue, Detail: "no"}, after(time.Second))
	if n := c.Next; n.Place != Ended || n.Done.State != lessor.Failed ||
		n.Done.Attempt.Reason != ReasonInvalidPayload ||
		n.Done.Attempt.Error != "invalid_payload: no" || !n.Done.Attempt.Lease.IsZero() ||
		n.Done.Attempt.Turn.Steps != 5 {
		t.Errorf("got %+v", n.Done)
	}
	same(t, "notes", c.Notes, []Note{{
		Job: turn.Job, Fence: 5, At: after(time.Second), From: lessor.Queued, To: lessor.Failed, Actor: ActorScheduler,
		Reason: ReasonInvalidPayload, Attempt: 1, QueuedAt: after(0),
	}})
}
