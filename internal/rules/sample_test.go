package rules

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lessor"
)

// start is when every test begins: 2026-02-06T20:10:00.000Z.
const start lessor.Instant = 1_770_408_600_000

// after returns the instant d after the start.
func after(d time.Duration) lessor.Instant { return start.Add(d) }

func jobID(n byte) lessor.JobID {
	return lessor.JobID{UUID: lessor.UUID{0: 1, 15: n}}
}

func leaseID(n byte) lessor.LeaseID {
	return lessor.LeaseID{UUID: lessor.UUID{0: 2, 15: n}}
}

func tenantID(n byte) lessor.TenantID {
	return lessor.TenantID{UUID: lessor.UUID{0: 3, 15: n}}
}

// lease returns a lease of worker w1, granted at the start for 60 s and without a heartbeat, after the changes.
func lease(changes ...func(*Held)) *Held {
	h := &Held{
		ID: leaseID(1), Turn: Turn{
			Job: jobID(1), Lane: 7, Seq: 9, Attempt: 1, MaxAttempts: 5, Fence: int64(start),
			Steps: 2, QueuedAt: after(-time.Second),
		},
		Units: 4, Worker: "w1", IssuedAt: start,
		Life: Life{TTL: time.Minute, BeatAt: start, ExpiresAt: after(time.Minute)},
	}
	for _, change := range changes {
		change(h)
	}
	return h
}

// served is a floor that moved last an hour before the start, with service noted at now.
func served(now lessor.Instant) Serving {
	return Serving{LastBeat: now, Since: after(-time.Hour)}
}

// same fails the test when got differs from want.
func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

// refused fails the test unless err is a refusal with this code.
func refused(t *testing.T, err error, code lessor.Code) {
	t.Helper()
	if got := lessor.CodeOf(err); got != code {
		t.Errorf("answer is %q (error: %v), want %q", got, err, code)
	}
}

// wrong fails the test unless err is invalid_value and blames exactly these fields with these messages.
func wrong(t *testing.T, err error, want ...lessor.FieldError) {
	t.Helper()
	refused(t, err, lessor.CodeInvalidValue)
	same(t, "the list of wrong fields", fieldsOf(err), want)
}

func fieldsOf(err error) []lessor.FieldError {
	if e, ok := err.(*lessor.Error); ok { //nolint:errorlint // rules return refusals bare
		return e.Fields
	}
	return nil
}
