package dashboard

import (
	"fmt"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// timeline is a picture of a job's attempts: one row per attempt, from the creation of the job to its end or now.
type timeline struct {
	From, To lessor.Instant
	Attempts []attempt
}

// attempt is one bar of a timeline.
type attempt struct {
	Number int
	Worker string
	State  lessor.State // the state at its end, or now
	From   lessor.Instant
	To     lessor.Instant
	X, W   float64 // position and width in per cent of the picture
	Reason string
	Label  string
}

// maxAttempts bounds the rows; the newest are shown.
const maxAttempts = 50

func newTimeline(job lessor.Job, events []lessor.Event, now lessor.Instant) timeline {
	t := timeline{From: job.CreatedAt, To: now}
	for _, e := range events {
		held := e.To == lessor.Leased || e.To == lessor.Running
		open := len(t.Attempts) > 0 && t.Attempts[len(t.Attempts)-1].To == 0
		switch {
		case e.To == lessor.Leased && !open:
			a := attempt{Number: e.Attempt, Worker: rules.WorkerOf(e.Actor), State: e.To, From: e.At}
			t.Attempts = append(t.Attempts, a)
		case held && open:
			t.Attempts[len(t.Attempts)-1].State = e.To
		case open:
			last := &t.Attempts[len(t.Attempts)-1]
			last.State, last.To, last.Reason = e.To, e.At, e.Reason
		}
	}
	if n := len(t.Attempts); n > 0 && job.LeaseID == nil && t.Attempts[n-1].To != 0 {
		t.To = t.Attempts[n-1].To
	}
	t.Attempts = t.Attempts[max(0, len(t.Attempts)-maxAttempts):]
	t.place(now)
	return t
}

// place computes the positions of the bars.
func (t *timeline) place(now lessor.Instant) {
	whole := max(1, float64(t.To.Sub(t.From)))
	for i := range t.Attempts {
		a := &t.Attempts[i]
		to, state := a.To, string(a.State)
		if to == 0 {
			to = max(now, a.From)
		} else if a.State == lessor.Queued {
			state = "released"
		}
		a.X = min(99, max(0, 100*float64(a.From.Sub(t.From))/whole))
		a.W = min(100-a.X, max(1, 100*float64(to.Sub(a.From))/whole)) // a short attempt must be visible
		took := to.Sub(a.From).Round(time.Millisecond)
		a.Label = fmt.Sprintf("attempt %d on %s: %s after %s", a.Number, a.Worker, state, took)
	}
}
