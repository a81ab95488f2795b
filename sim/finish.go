package main

import (
	"context"
	"encoding/json"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// finish ends a lease as its worker intends.
func (k *worker) finish(g *heldLease) {
	if k.world.quiet {
		g.end = "completed"
	}
	if g.end == "completed" && k.chance(20) {
		k.finishAll()
		return
	}
	how, sent := g.end, k.world.now
	if how == "waiting" && g.lease.asks == 0 {
		g.lease.asks = time.Duration(5+k.random.IntN(90)) * time.Second
	}
	k.world.known.ending(g.lease, how)
	err := k.do(how, func(ctx context.Context, n *node) error { return k.say(ctx, n, g.lease, how) })
	k.ended(g, how, err, sent)
}

// say makes the call that ends a lease.
func (k *worker) say(ctx context.Context, n *node, l *knownLease, how string) error {
	if how == "released" {
		r := lessor.Release{WorkerID: &k.name}
		switch reasons := []string{
			lessor.ReleaseCannotStart, lessor.ReleaseFolderHeld, lessor.ReleaseUndelivered,
		}; k.random.IntN(5) {
		case 0:
			r.DelayMS = new(int64(k.random.IntN(10_000)))
		case 1:
			r.Reason = &reasons[k.random.IntN(len(reasons))]
		case 2:
			r.Checkpoint, r.Progress = json.RawMessage(`{"released":true}`), new(k.random.Float64())
		}
		return n.Release(ctx, k.caller, l.id, r)
	}
	d := lessor.Completion{WorkerID: &k.name, Status: &how}
	switch how {
	case "completed":
		d.Result = json.RawMessage(`{"done":true}`)
	case "failed":
		d.Error = new("it did not work")
		if l.fence%7 == 0 {
			d.Retryable = new(false)
		}
	case "waiting":
		d.Question = &lessor.Asking{Text: new("go on?")}
		if l.fence%2 == 0 {
			d.Question.Choices = []string{"yes", "no"}
		}
		d.ExpiresInS = new(int64(l.asks / time.Second))
	}
	return n.Complete(ctx, k.caller, l.id, d)
}

// finishAll completes all leases whose time has come.
func (k *worker) finishAll() {
	var ds []lessor.LeaseCompletion
	var due []*heldLease
	for _, g := range k.held {
		if g.end == "completed" && k.world.now >= g.endAt {
			k.world.known.ending(g.lease, g.end)
			due = append(due, g)
			ds = append(ds, lessor.LeaseCompletion{
				LeaseID: new(g.lease.id.String()), Status: new("completed"), Result: json.RawMessage(`{"done":true}`),
			})
		}
	}
	sent := k.world.now
	answers, err := call(k.client, "complete all", func(ctx context.Context, n *node) ([]scheduler.LeaseAnswer, error) {
		return n.CompleteAll(ctx, k.caller, k.name, ds)
	})
	for i, g := range due {
		one := err
		if err == nil {
			one = answers[i].Err
		}
		k.ended(g, "completed", one, sent)
	}
}

// ended takes the answer to a call that ends a lease.
func (k *worker) ended(g *heldLease, how string, err error, sent time.Duration) {
	k.world.known.ended(g.lease, how, err, sent)
	switch code := lessor.CodeOf(err); {
	case err == nil || code == lessor.CodeLeaseNotFound:
		k.drop(g)
	case code == lessor.CodeConflict: // cancelled without a request
		g.end = "completed"
	default:
		g.endAt = k.world.now + 300*time.Millisecond
	}
}

// misbehave makes a call that a good worker does not make: on a lease that is over.
func (k *worker) misbehave() {
	if len(k.old) == 0 {
		_, _ = call(k.client, "cancelled", func(ctx context.Context, n *node) (lessor.StoppedLeases, error) {
			return n.Cancelled(ctx, k.caller, lessor.CancelWait{WorkerID: &k.name})
		})
		return
	}
	if len(k.held) > 0 && k.chance(20) {
		k.impersonate(k.held[0].lease)
		return
	}
	if k.chance(10) {
		id := k.old[0].lease.id.String()
		_, _ = call(k.client, "cancelled", func(ctx context.Context, n *node) (lessor.StoppedLeases, error) {
			return n.Cancelled(ctx, k.caller, lessor.CancelWait{WorkerID: &k.name, LeaseID: &id})
		})
		return
	}
	l, sent := k.old[k.random.IntN(len(k.old))].lease, k.world.now
	if k.chance(50) {
		a, err := call(k.client, "late beat", func(ctx context.Context, n *node) (lessor.HeartbeatAnswer, error) {
			return n.Heartbeat(ctx, k.caller, l.id, lessor.Heartbeat{WorkerID: &k.name})
		})
		k.world.known.heartbeatAnswered(l, a, err, sent)
		return
	}
	how := []string{"completed", "failed", "released"}[k.random.IntN(3)]
	k.world.known.ending(l, how)
	err := k.do("late "+how, func(ctx context.Context, n *node) error { return k.say(ctx, n, l, how) })
	k.world.known.ended(l, how, err, sent)
}

// impersonate sends a heartbeat under another name, which must change nothing (P4).
func (k *worker) impersonate(l *knownLease) {
	_, err := call(k.client, "another beat", func(ctx context.Context, n *node) (lessor.HeartbeatAnswer, error) {
		return n.Heartbeat(ctx, k.caller, l.id, lessor.Heartbeat{WorkerID: new("somebody else")})
	})
	if err == nil {
		k.world.fail("P4", "lease %v accepts the heartbeat of another worker", l.id)
	}
}
