package scheduler

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

// answer tells each request what it got: new leases, leases from before, or a denial.
func (r *round) answer(ctx context.Context, fresh []*requestCall) error {
	held := map[*requestCall][]*rules.Held{}
	for i := range r.taken {
		t := &r.taken[i]
		held[t.call] = append(held[t.call], t.held)
	}
	for _, c := range r.shown {
		held[c] = r.again[c]
	}
	jobs, err := r.jobs(ctx, held)
	if err != nil {
		return err
	}
	for c, hs := range held {
		for _, h := range hs {
			c.grants = append(c.grants, lessor.Grant{Lease: rules.ShowLease(h, r.p.now, r.p.serving), Job: jobs[h.Turn.Job]})
		}
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

// jobs returns the leased jobs as their workers see them, with the last checkpoint of those that ran before.
func (r *round) jobs(ctx context.Context, held map[*requestCall][]*rules.Held) (map[lessor.JobID]lessor.Job, error) {
	var all, ran []lessor.JobID
	for _, hs := range held {
		for _, h := range hs {
			all = append(all, h.Turn.Job)
			if h.Turn.Steps > 2 || h.FirstBeatAt != 0 { // more than submitted and granted
				ran = append(ran, h.Turn.Job)
			}
		}
	}
	specs, err := r.p.tx.Specs(ctx, all)
	if err != nil {
		return nil, err
	}
	reports, err := r.p.tx.Reports(ctx, ran)
	if err != nil {
		return nil, err
	}
	jobs := make(map[lessor.JobID]lessor.Job, len(all))
	for _, hs := range held {
		for _, h := range hs {
			st := rules.Standing{Spec: specs[h.Turn.Job], Place: rules.Leased, Turn: h.Turn, Held: h, Report: reports[h.Turn.Job]}
			if st.Spec != nil {
				jobs[h.Turn.Job] = rules.Show(&st)
			}
		}
	}
	return jobs, nil
}
