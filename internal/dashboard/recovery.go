package dashboard

import "lessor"

// recoveryPage shows this node's verdicts on the commands in its workspace.
type recoveryPage struct {
	Watching   bool // there is a monitor
	Status     lessor.RecoveryStatus
	Heartbeats lessor.JobHeartbeats
	Metrics    lessor.RecoveryMetrics
	Sentinels  []lessor.SentinelShown
	Failed     []lessor.FailedJob
	Cleanups   []lessor.Cleanup
}

// maxRows bounds each table of the page.
const maxRows = 200

var errNoMonitor = &lessor.Error{Code: lessor.CodeConflict, Detail: "this node watches no workspace"}

func (v *visit) showRecovery() (view, error) {
	if v.recovery == nil {
		return view{"Recovery", "recovery", recoveryPage{}}, nil
	}
	ctx := v.r.Context()
	snap, err := v.recovery.Snapshot(ctx)
	if err != nil {
		return view{}, err
	}
	failed, err := v.recovery.Failed(ctx)
	if err != nil {
		return view{}, err
	}
	p := recoveryPage{
		Watching: true, Status: snap.Status(), Heartbeats: snap.Heartbeats(), Metrics: snap.Metrics(),
		Sentinels: first(snap.Sentinels().Sentinels), Failed: first(failed.FailedJobs),
		Cleanups: first(v.recovery.Cleanups().Cleanups),
	}
	p.Status.Jobs = first(p.Status.Jobs)
	return view{"Recovery", "recovery", p}, nil
}

// first returns the rows of a list that the page shows.
func first[T any](list []T) []T { return list[:min(len(list), maxRows)] }

func (v *visit) scan() error {
	if v.recovery == nil {
		return errNoMonitor
	}
	if err := v.recovery.Scan(v.r.Context()); err != nil {
		return err
	}
	return v.back("/recovery", outcome{"scanned", v.recovery.Known().Metrics().Node, "/recovery"})
}

func (v *visit) markDead() error {
	return v.onJob("dead", func(id lessor.JobID) error {
		if v.recovery == nil {
			return errNoMonitor
		}
		_, err := v.recovery.MarkDead(v.r.Context(), v.caller, id)
		return err
	})
}

func (v *visit) resumeJob() error {
	id, err := v.jobID()
	if err != nil {
		return err
	}
	if v.recovery == nil {
		return errNoMonitor
	}
	resumed, err := v.recovery.Resume(v.r.Context(), v.caller, id, true)
	if err != nil {
		return err
	}
	return v.back("/recovery", v.aboutJob("requeued", resumed.NewJobID))
}
