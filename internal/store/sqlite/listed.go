package sqlite

import (
	"lessor"
	"lessor/internal/rules"
)

// listed is a row of a list: a job, and how it stands.
type listed struct {
	job   lessor.JobID
	lane  rules.LaneID
	seq   int64
	place rules.Place // Nowhere = not known, nor are state and fence
	state lessor.State
	fence int64
}

func readListed(r *row) listed {
	return listed{
		job:   lessor.JobID{UUID: r.id()},
		lane:  rules.LaneID(r.int()),
		seq:   r.int(),
		place: rules.Place(r.int()),
		state: lessor.State(r.text()),
		fence: r.int(),
	}
}

// findListed finds out how a job stands.
func (v *view) findListed(l *listed) error {
	s := &rules.Standing{Spec: &rules.Spec{ID: l.job, Seq: l.seq}}
	err := v.findPlace(s)
	l.place, l.state, l.fence = s.Place, s.State(), s.Turn.Fence
	return err
}

// status returns the status of the job's run, "" if it was never granted. rules.RunOf says the same (storetest).
func (l *listed) status() lessor.RunStatus {
	switch {
	case l.fence == 0:
		return ""
	case l.place == rules.Leased && l.state == lessor.Running:
		return lessor.RunRunning
	case l.place == rules.Leased:
		return lessor.RunClaimed
	case l.place == rules.Ended && l.state == lessor.Completed:
		return lessor.RunSuccess
	case l.place == rules.Ended:
		return lessor.RunFailed
	}
	return lessor.RunRetrying
}
