package main

import (
	"context"
	"encoding/json"

	"lessor"
	"lessor/internal/scheduler"
)

// turn sends ends, heartbeats and a request in one call.
func (k *worker) turn() {
	t := lessor.Turn{WorkerID: &k.name}
	var ends, beats []*heldLease
	var hows []string
	sent := k.world.now
	for _, g := range k.held {
		switch {
		case (g.end == "completed" || g.end == "failed") && sent >= g.endAt:
			k.world.known.ending(g.lease, g.end)
			c := lessor.LeaseCompletion{LeaseID: new(g.lease.id.String()), Status: new(g.end)}
			if g.end == "completed" {
				c.Result = json.RawMessage(`{"done":true}`)
			} else {
				c.Error = new("it did not work")
			}
			ends, hows, t.Complete = append(ends, g), append(hows, g.end), append(t.Complete, c)
		case g.end != "silent":
			g.beatAt = sent + g.lease.ttl/3
			beats, t.Heartbeat = append(beats, g), append(t.Heartbeat, g.lease.id.String())
		}
	}
	r := lessor.LeaseRequest{WorkerID: &k.name, Types: k.types}
	k.asked++
	if k.vary(&r); k.chance(70) || len(t.Complete)+len(t.Heartbeat) == 0 {
		t.Request = &lessor.TurnRequest{
			MaxUnits: r.MaxUnits, Types: r.Types, MaxLeases: r.MaxLeases, WaitMS: r.WaitMS, RequestID: r.RequestID,
			TTLMS: r.TTLMS, WorkspaceID: r.WorkspaceID, View: new(lessor.ViewWork),
		}
	}
	a, err := call(k.client, "turn", func(ctx context.Context, n *node) (scheduler.TurnAnswer, error) {
		a, err := n.Turn(ctx, k.caller, t)
		if err == nil && t.Request != nil && len(a.Grants) == 0 {
			k.denied(a.Denial)
		}
		return a, err
	})
	if err != nil {
		a.Complete, a.Heartbeat = failed(len(ends), err), failed(len(beats), err)
	}
	for i, g := range ends {
		k.ended(g, hows[i], a.Complete[i].Err, sent)
	}
	for i, g := range beats {
		k.heartbeatAnswered(g, a.Heartbeat[i].Beat, a.Heartbeat[i].Err, sent)
	}
	for i := range a.Grants {
		k.take(k.world.known.granted(k, &r, &a.Grants[i], sent))
	}
}

// failed returns the same error for n leases.
func failed(n int, err error) []scheduler.LeaseAnswer {
	all := make([]scheduler.LeaseAnswer, n)
	for i := range all {
		all[i].Err = err
	}
	return all
}
