package scheduler

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

// answerRequests tells each request what it got: new leases, leases from before, or a denial.
func (r *round) answerRequests(ctx context.Context, fresh []*requestCall) error {
	if err := r.show(ctx); err != nil {
		return err
	}
	if err := r.showAgain(ctx); err != nil {
		return err
	}
	for c, first := range r.twins {
		c.grants, c.denial = first.grants, first.denial
	}
	for _, c := range fresh {
		r.count(c)
	}
	return nil
}

func (r *round) count(c *requestCall) {
	if len(c.grants) > 0 || c.denial == nil {
		return
	}
	if r.p.stats.Denied == nil {
		r.p.stats.Denied = map[lessor.DenialCode]int{}
	}
	r.p.stats.Denied[c.denial.Code]++
}

// show adds the new leases to the answers. Those of one request follow each other.
func (r *round) show(ctx context.Context) error {
	var ran []lessor.JobID
	for i := range r.taken {
		if mayHaveRun(r.taken[i].held) {
			ran = append(ran, r.taken[i].turn.Job)
		}
	}
	reports, err := r.p.tx.Reports(ctx, ran)
	if err != nil {
		return err
	}
	for i := range r.taken {
		t := &r.taken[i]
		if t.call.grants == nil {
			t.call.grants = make([]lessor.Grant, 0, min(t.call.ask.MaxLeases, len(r.taken)-i))
		}
		t.call.grants = append(t.call.grants, r.p.shown(t.held, t.spec, reports[t.turn.Job]))
	}
	return nil
}

// showAgain answers repeated requests with the leases that they were granted before.
func (r *round) showAgain(ctx context.Context) error {
	if len(r.shown) == 0 {
		return nil
	}
	var all []lessor.JobID
	for _, c := range r.shown {
		for _, h := range r.again[c] {
			all = append(all, h.Turn.Job)
		}
	}
	specs, err := r.p.tx.Specs(ctx, all)
	if err != nil {
		return err
	}
	reports, err := r.p.tx.Reports(ctx, all)
	if err != nil {
		return err
	}
	for _, c := range r.shown {
		for _, h := range r.again[c] {
			c.grants = append(c.grants, r.p.shown(h, specs[h.Turn.Job], reports[h.Turn.Job]))
		}
	}
	return nil
}

// mayHaveRun reports whether a job may have left a checkpoint.
func mayHaveRun(h *rules.Held) bool { return ranBefore(h) || h.FirstBeatAt != 0 }

// ranBefore reports whether a job may have run before this lease: its record has more than "submitted" and "granted".
func ranBefore(h *rules.Held) bool { return h.Turn.Steps > 2 }

// shown is a lease and its job as its worker sees them, with the last checkpoint of a job that ran before.
func (p *pass) shown(h *rules.Held, spec *rules.Spec, report *rules.Report) lessor.Grant {
	g := lessor.Grant{Lease: rules.ShowGranted(h, p.now, p.serving)}
	if spec != nil {
		g.Job = rules.Show(&rules.Standing{Spec: spec, Place: rules.Leased, Turn: h.Turn, Held: h, Report: report})
	}
	return g
}
