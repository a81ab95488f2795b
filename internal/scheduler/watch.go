package scheduler

import (
	"context"
	"fmt"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// Watched is what a monitor of sentinels needs to know about a job.
type Watched struct {
	Job    lessor.JobID
	Tenant lessor.TenantID
	State  lessor.State
	Final  bool  // nothing more happens to it
	Fence  int64 // of its last lease
	Held   *rules.Held
	Now    lessor.Instant
	Over   bool // the lease has lapsed, and the sweep will end it
	// EndsAt is when the lease ends without another heartbeat.
	EndsAt lessor.Instant
	// SinceBeat is the time since its last heartbeat, without the scheduler's own downtime.
	SinceBeat time.Duration
	// EndedAt is when a final job ended.
	EndedAt lessor.Instant
}

// Watched returns what is known about jobs; unknown ones are left out.
func (s *Scheduler) Watched(ctx context.Context, ids []lessor.JobID) (map[lessor.JobID]Watched, error) {
	all := make(map[lessor.JobID]Watched, len(ids))
	err := s.view(ctx, "load jobs", func(v View) error {
		standings, err := v.Standings(ctx, ids)
		for id, st := range standings {
			all[id] = watched(st.Spec.Lane.Tenant, st.Turn, st.Held, v)
			w := all[id]
			w.State, w.Final = st.State(), st.Place == rules.Ended
			if w.Final {
				w.EndedAt = st.Done.Attempt.EndedAt
			}
			all[id] = w
		}
		return err
	})
	return all, err
}

// WorkspaceLeases returns the live leases that were requested with a workspace's id.
func (s *Scheduler) WorkspaceLeases(ctx context.Context, workspace string) (all []Watched, err error) {
	err = s.view(ctx, "load leases", func(v View) error {
		held, err := v.WorkspaceLeases(ctx, workspace)
		all = make([]Watched, len(held))
		for i, h := range held {
			all[i] = watched(h.Tenant, h.Turn, h, v)
		}
		return err
	})
	return all, err
}

func watched(tenant lessor.TenantID, t rules.Turn, h *rules.Held, v View) Watched {
	w := Watched{Job: t.Job, Tenant: tenant, Fence: t.Fence, Held: h, Now: v.Now()}
	if h != nil {
		w.State, w.Over = h.State(), rules.Over(h, v.Now(), servingOf(v)) != ""
		w.EndsAt, w.SinceBeat = rules.Effective(h, v.Now(), servingOf(v)), rules.SinceBeat(h, v.Now(), servingOf(v))
	}
	return w
}

// Outcome returns how the attempt of a job with this fence ended; "" if it has not, or is not remembered.
func (s *Scheduler) Outcome(ctx context.Context, id lessor.JobID, fence int64) (rules.Outcome, error) {
	all, err := s.Histories(ctx, []lessor.JobID{id})
	h := all[id]
	if h == nil {
		return "", err
	}
	if d := h.Standing.Done; d != nil && d.Attempt.Turn.Fence == fence && !d.Attempt.Lease.IsZero() {
		return d.Attempt.Outcome, nil
	}
	for i := range h.Attempts {
		if h.Attempts[i].Turn.Fence == fence {
			return h.Attempts[i].Outcome, nil
		}
	}
	return "", nil
}

// Histories returns what the records of jobs are made of; unknown ids are left out.
func (s *Scheduler) Histories(
	ctx context.Context, ids []lessor.JobID,
) (all map[lessor.JobID]*rules.History, err error) {
	err = s.view(ctx, "load records", func(v View) error {
		all, err = v.Histories(ctx, ids)
		return err
	})
	return all, err
}

// Watch holds live leases until an instant each: they do not end before it by themselves. Those that are over are left
// out.
func (s *Scheduler) Watch(ctx context.Context, until map[lessor.LeaseID]lessor.Instant) error {
	return s.mark(ctx, until, func(p *pass, h *rules.Held) []rules.Note {
		h.WatchUntil = until[h.ID]
		return nil
	})
}

// Reattach notes that the commands under leases were found alive after a restart.
func (s *Scheduler) Reattach(ctx context.Context, found ...lessor.LeaseID) error {
	ids := make(map[lessor.LeaseID]lessor.Instant, len(found))
	for _, id := range found {
		ids[id] = 0
	}
	return s.mark(ctx, ids, func(p *pass, h *rules.Held) []rules.Note {
		return rules.Reattach(h, p.now)
	})
}

// mark changes live leases, and what the record says about them.
func (s *Scheduler) mark(
	ctx context.Context, ids map[lessor.LeaseID]lessor.Instant, change func(p *pass, h *rules.Held) []rules.Note,
) error {
	return s.change(ctx, Caller{}, func(ctx context.Context, p *pass) error {
		all := make([]lessor.LeaseID, 0, len(ids))
		for id := range ids {
			all = append(all, id)
		}
		leases, err := p.tx.Leases(ctx, all)
		if err != nil {
			return fmt.Errorf("load leases: %w", err)
		}
		p.readClock()
		var changed []*rules.Held
		for _, id := range all {
			h := leases[id]
			if h == nil || rules.Over(h, p.now, p.serving) != "" {
				continue
			}
			began, check := h.FirstBeatAt == 0, rules.ExpiryCheck(h, p.now, p.serving)
			notes := change(p, h)
			if rules.ExpiryCheck(h, p.now, p.serving) < check { // it is planned for later
				p.planCheck(h)
			}
			if began && h.FirstBeatAt != 0 {
				p.publish(h.Turn.Job, h.Tenant, func() lessor.Event {
					e := rules.Began(h)
					e.Seq -= len(notes) // it comes before them
					return e
				})
			}
			for _, n := range notes {
				p.publish(h.Turn.Job, h.Tenant, func() lessor.Event { return n.Event(h.Steps(), n.From, "") })
			}
			p.notes = append(p.notes, notes...)
			changed = append(changed, h)
		}
		return p.tx.SaveLeases(ctx, changed)
	})
}

// EndDead ends a lease whose command is dead: the attempt fails, and is retried as usual.
func (s *Scheduler) EndDead(ctx context.Context, c Caller, id lessor.LeaseID, reason rules.DeathReason) error {
	end := rules.End{
		Outcome: rules.OutcomeFailed, Reason: rules.ReasonHeartbeatStopped, Actor: c.Actor, Error: string(reason),
	}
	return s.endOne(ctx, c, ending{id: id, end: end})
}

// Conclude ends a lease as the exit record of its command says, for a command that ended while no monitor ran.
func (s *Scheduler) Conclude(ctx context.Context, c Caller, id lessor.LeaseID, d lessor.Completion) error {
	end, err := rules.Completion(&d, "")
	if err != nil {
		return err
	}
	end.Actor = rules.ActorOf(c.Actor, *d.WorkerID)
	return s.endOne(ctx, c, ending{id: id, end: end})
}

// Resumable returns the job that Resume would make now from one that failed for good, or whose command was found dead.
func (s *Scheduler) Resumable(ctx context.Context, c Caller, id lessor.JobID) (*rules.Spec, error) {
	all, err := s.Histories(ctx, []lessor.JobID{id})
	if err != nil {
		return nil, err
	}
	h := all[id]
	if h == nil || !c.sees(h.Standing.Spec.Lane.Tenant) {
		return nil, lessor.ErrJobNotFound
	}
	spec, _, err := rules.Resume(h, lessor.JobID{UUID: s.newUUID()}, c.Actor, 0)
	return spec, err
}

// Resume submits the job that Resumable returned, with the last checkpoint and the journal of the old one if asked for.
func (s *Scheduler) Resume(ctx context.Context, c Caller, id, next lessor.JobID, fromCheckpoint bool) error {
	return s.change(ctx, c, func(ctx context.Context, p *pass) error {
		st, err := p.lock(ctx, c, id)
		if err != nil {
			return err
		}
		all, err := p.tx.Histories(ctx, []lessor.JobID{id})
		if err != nil {
			return fmt.Errorf("load record: %w", err)
		}
		spec, ch, err := rules.Resume(all[id], next, c.Actor, p.now)
		if err != nil {
			return err
		}
		if err := p.apply(ctx, st, ch); err != nil {
			return err
		}
		p.audit(c, "job.resumed", "job/"+id.String(), nil, map[string]any{
			"newJobId": next, "fromCheckpoint": fromCheckpoint,
		})
		if err := p.store(ctx, []*rules.Spec{spec}); err != nil {
			return err
		}
		if st.Report == nil || !fromCheckpoint {
			return nil
		}
		entries, err := p.tx.CopyJournal(ctx, id, spec)
		if err != nil {
			return err
		}
		return p.tx.SaveReports(ctx, []rules.Report{{
			Job: next, Checkpoint: st.Report.Checkpoint, Entries: &entries, At: p.now,
		}})
	})
}

// Raise stores alerts, except those of a kind that is already open about the same subject.
func (s *Scheduler) Raise(ctx context.Context, alerts ...lessor.Alert) error {
	return s.change(ctx, Caller{}, func(ctx context.Context, p *pass) error {
		for _, a := range alerts {
			if err := p.raise(ctx, a.Kind, a.Subject, a.TenantID, a.Message); err != nil {
				return err
			}
		}
		return nil
	})
}

// Clear ends the alerts of these kinds about these subjects, if there are any.
func (s *Scheduler) Clear(ctx context.Context, alerts ...lessor.Alert) error {
	return s.change(ctx, Caller{}, func(ctx context.Context, p *pass) error {
		for _, a := range alerts {
			if err := p.clear(ctx, a.Kind, a.Subject, a.TenantID); err != nil {
				return err
			}
		}
		return nil
	})
}
