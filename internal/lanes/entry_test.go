package lanes

import (
	"math"
	"testing"
	"unsafe"

	"lessor"
	"lessor/internal/rules"
)

func TestTurnComesBackAsItWas(t *testing.T) {
	full := rules.Turn{
		Job: lessor.JobID{UUID: lessor.UUID{1, 2, 3}}, Lane: 4, Seq: 5, Attempt: 6, MaxAttempts: 7, Interruptions: 8,
		Fence: 9, Steps: 11, QueuedAt: 10,
	}
	large := full
	large.Seq, large.Fence, large.QueuedAt = math.MaxInt64, math.MaxInt64, math.MaxInt64
	large.Attempt, large.MaxAttempts, large.Interruptions, large.Steps =
		math.MaxUint16, math.MaxUint16, math.MaxUint16, math.MaxUint16
	together := rules.Turn{
		Job: full.Job, Lane: 4, Seq: math.MaxInt64, MaxAttempts: 7, Steps: 1, QueuedAt: 10, RowRef: math.MaxInt64 - 63,
	}
	for _, want := range []rules.Turn{{Lane: 4}, full, large, together} {
		x := New(nil)
		x.Add(4, plain(nil))
		x.Enqueue(want)
		if got, ok := x.Remove(4, want.Seq); !ok || got != want {
			t.Errorf("%+v came back as %+v", want, got)
		}
	}
}

func TestEntryIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(entry{}); n > 48 {
		t.Errorf("an entry has %d bytes, and a million are kept", n)
	}
}
