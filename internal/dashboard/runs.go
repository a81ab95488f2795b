package dashboard

import (
	"strings"

	"lessor"
)

// runsPage is the audit of runs.
type runsPage struct {
	JobID, Tenant, Status, Trace string
	Statuses                     []lessor.RunStatus
	Runs                         []runRow
	Next                         string
}

// runRow is a run and its last error.
type runRow struct {
	lessor.Run
	Error *lessor.RunError
}

func (v *visit) runs() (view, error) {
	q := v.r.URL.Query()
	word := func(name string) string { return strings.TrimSpace(q.Get(name)) }
	p := runsPage{
		JobID: word("job_id"), Tenant: word("tenant_id"), Status: word("status"), Trace: word("trace_id"),
		Statuses: lessor.RunStatuses(),
	}
	tenant, err := readTenant(p.Tenant)
	if err != nil {
		return view{"Runs", "runs", p}, err
	}
	ctx := v.r.Context()
	list, next, err := v.scheduler.Runs(ctx, v.caller, lessor.RunFilter{
		JobID: p.JobID, Tenant: tenant, Status: lessor.RunStatus(p.Status), Trace: p.Trace, Limit: pageSize,
		Cursor: q.Get("cursor"),
	})
	if err != nil {
		return view{"Runs", "runs", p}, err
	}
	p.Next = v.next(next)
	for _, run := range list {
		row := runRow{Run: run}
		if run.LastErrorRef != "" {
			if e, err := v.scheduler.RunError(ctx, v.caller, run.LastErrorRef); err == nil {
				row.Error = &e
			}
		}
		p.Runs = append(p.Runs, row)
	}
	return view{"Runs", "runs", p}, nil
}
