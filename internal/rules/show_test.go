package rules

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"lessor"
)

// plain is the least that a job can be; full has everything that can be asked for.
var (
	plain = &Spec{
		ID: jobID(1), Lane: Lane{Class: "default", Priority: lessor.Normal, Type: "generic", Units: 1},
		Payload: json.RawMessage(`{}`), MaxAttempts: 5, TraceID: "abc", Actor: "anna", CreatedAt: start,
	}
	full = &Spec{
		ID: jobID(1), Lane: Lane{
			Tenant: tenantID(4), Class: "bulk", Priority: lessor.High, Type: "resize", Unique: true, Units: 4,
			LockKey: "door", Definition: "nightly",
		},
		Payload: json.RawMessage(`{"n": 1.50}`), Tags: []string{"a", "b"}, IdempotencyKey: "k1",
		MaxRuntime: 90 * time.Second, MaxAttempts: 5,
		RunAt: after(time.Second), TickAt: after(2 * time.Second), TraceID: "abc", Actor: "anna", CreatedAt: start,
	}
)

// shown is the part of a job that depends on where it is.
type shown struct {
	State           lessor.State
	LeaseID         *lessor.LeaseID
	UpdatedAt       lessor.Instant
	RetryAt         lessor.Instant
	Attempt         int
	MaxAttempts     int
	Interruptions   int
	CancelRequested bool
	Reattached      bool
	Result          string
	Error           *string
}

func TestShowHasThePlaceOfAJob(t *testing.T) {
	beating := func(h *Held) { h.FirstBeatAt, h.BeatAt, h.Reattached = after(time.Second), after(5*time.Second), 1 }
	ended := func(state lessor.State, reason, message, last string) *Standing {
		s := endedJob(state)
		s.Done.Attempt.Reason, s.Done.Attempt.Error, s.Done.Attempt.EndedAt = reason, message, after(3*time.Minute)
		s.LastError = last
		return s
	}
	completed := ended(lessor.Completed, "completed", "", "once failed")
	completed.Done.Result = json.RawMessage(`[1]`)
	waiting := waitingJob(lessor.Failed)
	waiting.LastError = "boom"
	for _, c := range []struct {
		name string
		job  *Standing
		want shown
	}{
		{"queued", queuedJob(), shown{State: "queued", UpdatedAt: after(time.Minute)}},
		{
			"queued on a clock that stepped back",
			&Standing{Place: InQueue, Turn: Turn{
				QueuedAt: after(-time.Hour), Attempt: 2, MaxAttempts: 5,
				Interruptions: 1,
			}},
			shown{State: "queued", UpdatedAt: start},
		},
		{"not due", waitingJob(lessor.Queued), shown{State: "queued", UpdatedAt: after(time.Minute)}},
		{"failed, waiting", waiting, shown{
			State: "failed", UpdatedAt: after(time.Minute), RetryAt: after(time.Hour),
			Error: new("boom"),
		}},
		{
			"expired, waiting", waitingJob(lessor.Expired),
			shown{State: "expired", UpdatedAt: after(time.Minute), RetryAt: after(time.Hour)},
		},
		{"leased", heldJob(), shown{State: "leased", LeaseID: new(leaseID(1)), UpdatedAt: start}},
		{"running", heldJob(beating), shown{
			State: "running", LeaseID: new(leaseID(1)),
			UpdatedAt: after(5 * time.Second), Reattached: true,
		}},
		{
			"asked to cancel", heldJob(cancelRequested),
			shown{State: "leased", LeaseID: new(leaseID(1)), UpdatedAt: after(2 * time.Second), CancelRequested: true},
		},
		{"completed", completed, shown{State: "completed", UpdatedAt: after(3 * time.Minute), Result: `[1]`}},
		{
			"failed, with the worker's words", ended(lessor.Failed, "failed", "bang", "boom"),
			shown{State: "failed", UpdatedAt: after(3 * time.Minute), Error: new("bang")},
		},
		{
			"failed, without words", ended(lessor.Failed, "max_runtime_exceeded", "", ""),
			shown{State: "failed", UpdatedAt: after(3 * time.Minute), Error: new("max_runtime_exceeded")},
		},
		{
			"expired", ended(lessor.Expired, "lease_expired", "", "boom"),
			shown{State: "expired", UpdatedAt: after(3 * time.Minute), Error: new("boom")},
		},
		{
			"cancelled", ended(lessor.Cancelled, "cancelled", "", ""),
			shown{State: "cancelled", UpdatedAt: after(3 * time.Minute)},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.job.Spec = plain
			if c.job.Held != nil {
				c.job.Turn.Attempt, c.job.Turn.Interruptions = 2, 1
			}
			j := Show(c.job)
			got := shown{
				j.State, j.LeaseID, j.UpdatedAt, j.RetryAt, j.Attempt, j.MaxAttempts, j.Interruptions,
				j.CancelRequested, j.Reattached, string(j.Result), j.Error,
			}
			c.want.Attempt, c.want.MaxAttempts, c.want.Interruptions = 2, 5, 1
			if c.want.Result == "" {
				c.want.Result = "null"
			}
			same(t, "the job", got, c.want)
		})
	}
}

func TestShowHasEverythingThatWasSubmitted(t *testing.T) {
	s := queuedJob()
	s.Spec = full
	s.Report = &Report{Progress: new(0.25), Message: new("half of a half"), Checkpoint: json.RawMessage(`{"page":3}`)}
	s.Report.Interrupted = new(s.Report.reached()) // it has not moved since it was released
	same(t, "the job", Show(s), lessor.Job{
		ID: jobID(1), Type: "resize", Priority: lessor.High, RequestedUnits: 4, Unique: true, State: lessor.Queued,
		Payload: json.RawMessage(`{"n": 1.50}`), IdempotencyKey: new("k1"), Tags: []string{"a", "b"},
		MaxRuntimeS: new(int64(90)),
		CreatedAt:   start, UpdatedAt: after(time.Minute), TenantID: tenantID(4), FairnessClass: "bulk",
		LockKey: new("door"),
		Attempt: 2, MaxAttempts: 5, RunAt: after(time.Second), TraceID: "abc", Progress: new(0.25),
		Message:    new("half of a half"),
		Checkpoint: json.RawMessage(`{"page":3}`), Result: json.RawMessage("null"), Interruptions: 1,
		DefinitionID: new("nightly"), TickAt: after(2 * time.Second),
	})
}

func TestShowLeavesNothingOut(t *testing.T) {
	for place, s := range map[string]*Standing{
		"queue": queuedJob(), "waiting": waitingJob(lessor.Failed), "leased": heldJob(),
		"ended": endedJob(lessor.Cancelled),
	} {
		s.Spec = plain
		raw, err := json.Marshal(Show(s))
		if err != nil {
			t.Fatalf("a job in place %s cannot be written: %v", place, err)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(raw, &fields); err != nil {
			t.Fatalf("a job in place %s is not an object: %v", place, err)
		}
		if want := reflect.TypeFor[lessor.Job]().NumField(); len(fields) != want {
			t.Errorf("a job in place %s shows %d fields, want %d: %s", place, len(fields), want, raw)
		}
		for field, want := range map[string]string{
			"payload": "{}", "tags": "[]", "idempotency_key": "null", "max_runtime_s": "null", "lock_key": "null",
			"run_at":   "null",
			"progress": "null", "message": "null", "checkpoint": "null", "result": "null", "error": "null",
			"definition_id": "null",
			"tick_at":       "null", "tenant_id": `"00000000-0000-0000-0000-000000000000"`,
		} {
			if got := string(fields[field]); got != want {
				t.Errorf("%s of a plain job in place %s is %s, want %s", field, place, got, want)
			}
		}
	}
}

// TestGrantedLeaseShowsTheTimeLeft: the answer to a repeated request must not send its worker past the end of the
// lease.
func TestGrantedLeaseShowsTheTimeLeft(t *testing.T) {
	for _, c := range []struct {
		name      string
		now       time.Duration
		floor     time.Duration
		ttl, pace int64
	}{
		{"at the grant", 0, -time.Hour, 60000, 20000},
		{"halfway", 30 * time.Second, -time.Hour, 30000, 10000},
		{"a millisecond before the end", time.Minute - time.Millisecond, -time.Hour, 1, 1},
		{"at the end", time.Minute, -time.Hour, 0, 1},
		{"under a floor that gives it more", 30 * time.Second, 20 * time.Second, 50000, 16666},
		{"under a floor that gives it its whole ttl", 30 * time.Second, 30 * time.Second, 60000, 20000},
	} {
		got := ShowGranted(lease(), after(c.now), Serving{LastBeat: after(c.now), Since: after(c.floor)})
		same(t, c.name+": ttl_ms and heartbeat_after_ms", [2]int64{got.TTLMS, got.HeartbeatAfterMS},
			[2]int64{c.ttl, c.pace})
	}
	watched := lease(func(h *Held) { h.WatchUntil = after(time.Hour) })
	same(t, "the ttl of a watched lease", ShowGranted(watched, start, served(start)).TTLMS, 60000)
}

func TestShowLeaseHasTheEffectiveEnd(t *testing.T) {
	h := lease(func(h *Held) { h.BeatAt = after(time.Second) })
	for _, c := range []struct {
		name  string
		floor time.Duration
		ends  time.Duration
	}{
		{"an old floor", -time.Hour, time.Minute},
		{"a floor 2 s after the start", 2 * time.Second, 62 * time.Second},
	} {
		got := ShowLease(h, after(3*time.Second), Serving{LastBeat: after(3 * time.Second), Since: after(c.floor)})
		same(t, c.name+": the lease", got, lessor.Lease{
			ID: leaseID(1), JobID: jobID(1), WorkerID: "w1", CapacityUnits: 4, IssuedAt: start,
			ExpiresAt:     after(c.ends),
			LastHeartbeat: after(time.Second), Fence: int64(start), TTLMS: 60000, HeartbeatAfterMS: 20000,
		})
	}
}
