package dashboard

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lessor"
	"lessor/internal/token"
)

// leasesPage lists live leases.
type leasesPage struct {
	Worker    string
	Leases    []leaseRow
	Next      string
	CanRevoke bool
}

// leaseRow is one lease and its time left.
type leaseRow struct {
	lessor.Lease
	Left    float64 // per cent of its ttl
	LeftFor time.Duration
	Late    bool // less than a third is left: a heartbeat is missing
	Verdict string
}

// The verdicts on a lease by its heartbeats. A command in the workspace has the monitor's verdict instead.
const (
	running = "running"
	leased  = "leased" // no heartbeat yet
	late    = "late"
)

func newLeaseRow(l lessor.Lease, now lessor.Instant) leaseRow {
	row := leaseRow{Lease: l, LeftFor: max(0, l.ExpiresAt.Sub(now)), Verdict: running}
	row.Left = share(int(row.LeftFor.Milliseconds()), int(l.TTLMS))
	row.Late = row.Left < 100.0/3
	switch {
	case row.Late:
		row.Verdict = late
	case l.LastHeartbeat == 0 || l.LastHeartbeat == l.IssuedAt:
		row.Verdict = leased
	}
	return row
}

func (v *visit) leases() (view, error) {
	q := v.r.URL.Query()
	p := leasesPage{Worker: strings.TrimSpace(q.Get("worker_id")), CanRevoke: v.can(token.Revoke)}
	list, next, err := v.scheduler.Leases(v.r.Context(), v.caller, p.Worker, pageSize, q.Get("cursor"))
	if err != nil {
		return view{"Leases", "leases", p}, err
	}
	p.Next = v.next(next)
	verdicts, now := v.verdicts(), lessor.At(time.Now())
	for _, l := range list {
		row := newLeaseRow(l, now)
		if verdict, ok := verdicts[l.JobID]; ok {
			row.Verdict = string(verdict)
		}
		p.Leases = append(p.Leases, row)
	}
	return view{"Leases", "leases", p}, nil
}

// verdicts returns the last verdicts of this node's monitor on the commands in its workspace.
func (v *visit) verdicts() map[lessor.JobID]lessor.HeartbeatStatus {
	if v.recovery == nil {
		return nil
	}
	jobs := v.recovery.Known().Heartbeats().Jobs
	all := make(map[lessor.JobID]lessor.HeartbeatStatus, len(jobs))
	for _, j := range jobs {
		all[j.JobID] = j.Status
	}
	return all
}

func (v *visit) revoke() error {
	u, err := lessor.ParseUUID(v.r.PathValue("id"))
	if err != nil {
		return lessor.ErrLeaseNotFound
	}
	err = v.scheduler.Revoke(v.r.Context(), v.caller, lessor.LeaseID{UUID: u}, "revoked from the dashboard")
	job, unnamed := lessor.ParseJobID(v.form.Get("job"))
	switch {
	case unnamed != nil && err == nil:
		return v.back("/leases", outcome{"revoked", "lease " + short(u.String()), "/leases"})
	case unnamed == nil && errors.Is(err, lessor.ErrLeaseNotFound):
		return v.leaseOver(job, err)
	case err != nil:
		return err
	}
	return v.back("/leases", v.aboutJob("revoked", job))
}

// leaseOver returns the refusal to revoke the lease in the path, which has just ended: it says when and how, as far as
// the record of the job has it.
func (v *visit) leaseOver(job lessor.JobID, err error) error {
	events, _, failed := v.scheduler.Events(v.r.Context(), v.caller, job, maxEvents, "")
	if failed != nil {
		return failed
	}
	for _, e := range slices.Backward(events) {
		if e.LeaseID != nil && e.LeaseID.String() == v.r.PathValue("id") {
			return v.refusal(job, &lessor.Error{Code: lessor.CodeLeaseNotFound, Detail: fmt.Sprintf(
				"the lease ended at %s: %s, by %s; nothing was done", instant(e.At), e.Reason, e.Actor)})
		}
	}
	return err
}

// workersPage lists the workers that requested work recently.
type workersPage struct {
	Workers []lessor.Worker
	Next    string
}

// workers shows the workers after the one that the cursor names, in the order of their names.
func (v *visit) workers() (view, error) {
	list, err := v.scheduler.Workers(v.r.Context(), v.caller)
	from, found := slices.BinarySearchFunc(list, v.r.URL.Query().Get("cursor"), func(w lessor.Worker, name string) int {
		return strings.Compare(w.WorkerID, name)
	})
	if found {
		from++
	}
	p := workersPage{Workers: list[from:min(len(list), from+pageSize)]}
	if from+pageSize < len(list) {
		p.Next = v.next(list[from+pageSize-1].WorkerID)
	}
	return view{"Workers", "workers", p}, err
}
