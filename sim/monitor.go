package main

import (
	"context"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// monitor judges the commands of a workspace by their pulses, as package recovery does by their sentinels.
type monitor struct {
	*client
	pulses map[lessor.LeaseID]*pulse
}

// pulse is the sentinel of a command.
type pulse struct {
	seenAt time.Duration // when the monitor saw the command first
	diesAt time.Duration // when the command stops pulsing
	absent bool          // it writes no sentinel
	alert  lessor.AlertKind
}

// The times of sentinels: short, so that an hour has many of them.
const (
	pulseEvery = 10 * time.Second
	watchFor   = 30 * time.Second
)

var thresholds = rules.Thresholds{StaleAfter: 20 * time.Second, DeadAfter: time.Minute}

func (w *world) watch(t *task) {
	c := w.client(t, scheduler.Caller{Actor: rules.ActorRecovery})
	m := &monitor{client: c, pulses: map[lessor.LeaseID]*pulse{}}
	for !w.quiet {
		next := 2 * w.tempo
		all, err := call(m.client, "scan", func(ctx context.Context, n *node) ([]scheduler.Watched, error) {
			return n.WorkspaceLeases(ctx, "workspace-1")
		})
		restarted := m.chance(2)
		for i := range all {
			if !restarted {
				next = min(next, m.judge(&all[i]))
			} else if err == nil {
				m.begin(&all[i])
			}
		}
		m.sleep(max(time.Second, next))
	}
}

// pulseOf returns the sentinel of a command, and how long it is silent.
func (m *monitor) pulseOf(l *rules.Held) (*pulse, time.Duration) {
	p := m.pulses[l.ID]
	if p == nil {
		dies := time.Duration(m.random.ExpFloat64() * float64(5*time.Minute))
		p = &pulse{seenAt: m.world.now, diesAt: m.world.now + dies, absent: m.chance(10)}
		m.pulses[l.ID] = p
	}
	lived := min(m.world.now, p.diesAt) - p.seenAt
	return p, m.world.now - p.seenAt - lived.Truncate(pulseEvery)
}

// judge raises and clears the alerts of a command, and ends its lease if it is dead. It returns when to check again. A
// command that pulses, or whose lease gets heartbeats, is never dead (P5).
func (m *monitor) judge(w *scheduler.Watched) time.Duration {
	l := w.Held
	p, silent := m.pulseOf(l)
	late := time.Duration(m.random.IntN(100)-50) * time.Minute // the file's clock is not ours
	times := rules.PulseTimes{SincePulse: silent, SinceSeen: silent}
	if m.chance(30) {
		times.SincePulse, times.SinceOther = silent+late, new(max(silent, 0)+time.Second)
	}
	e := rules.Evidence{
		Sentinel: !p.absent, Live: rules.SpeaksFor(l, l.Turn.Fence, "workspace-1"), Age: times.Age(),
		SinceBeat: w.SinceBeat, State: w.State, Final: w.Final,
	}
	verdict, b := rules.Judge(e, thresholds), m.world.known
	if verdict == rules.Dead && (silent < thresholds.DeadAfter-time.Second || w.SinceBeat < thresholds.StaleAfter) {
		b.fail("P5", "the command of lease %v is dead %v after its pulse and %v after its heartbeat", l.ID, silent,
			w.SinceBeat)
	}
	if kind := rules.AlertFor(e, thresholds, rules.MissedBeat(l, w.SinceBeat) && m.chance(10)); kind != p.alert {
		m.alert(w, p.alert, kind)
		p.alert = kind
	}
	if verdict == rules.Dead {
		sent := m.world.now
		b.tried[act{l.ID.UUID, rules.ReasonHeartbeatStopped}] = true
		err := m.do("end dead", func(ctx context.Context, n *node) error {
			return n.EndDead(ctx, m.caller, l.ID, rules.DeathHeartbeatStopped)
		})
		if err == nil {
			b.over(b.leases[l.ID], sent)
		}
	}
	if next := rules.VerdictChanges(e, thresholds); next != 0 {
		return next
	}
	return time.Hour
}

// alert replaces the alert about a command.
func (m *monitor) alert(w *scheduler.Watched, was, is lessor.AlertKind) {
	about := lessor.Alert{Subject: w.Job.String(), TenantID: w.Tenant, Message: "as the monitor saw it"}
	_ = m.do("alert", func(ctx context.Context, n *node) error {
		if about.Kind = was; was != "" {
			if err := n.Clear(ctx, about); err != nil {
				return err
			}
		}
		if about.Kind = is; is != "" {
			return n.Raise(ctx, about)
		}
		return nil
	})
}

// begin holds a lease after a restart of the monitor, until its command pulses again or is given up.
func (m *monitor) begin(w *scheduler.Watched) {
	_, silent := m.pulseOf(w.Held)
	long, _ := rules.WatchFor(silent, 2*time.Minute, watchFor, w.EndsAt.Sub(w.Now))
	m.hold(w.Held.ID, long)
}

// hold watches a lease for a time: it does not expire before (P5).
func (c *client) hold(id lessor.LeaseID, long time.Duration) {
	b, sent := c.world.known, c.world.now
	until := c.world.clock().Add(long)
	b.watching(id, 0)
	err := c.do("watch", func(ctx context.Context, n *node) error {
		return n.Watch(ctx, map[lessor.LeaseID]lessor.Instant{id: until})
	})
	if t := b.live[id]; err == nil && t != nil && t.WatchUntil == until && b.setAt < sent {
		b.watching(id, sent+long)
	}
}
