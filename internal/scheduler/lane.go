package scheduler

import (
	"context"
	"fmt"

	"lessor"
	"lessor/internal/rules"
)

// unknown appends a lane to ids if the fold does not know it.
func (f *fold) unknown(ids []rules.LaneID, lane rules.LaneID) []rules.LaneID {
	if f.index.Known(lane) {
		return ids
	}
	return append(ids, lane)
}

// learn loads lanes that the fold does not know. Other nodes register lanes at any time, and only some of what they
// publish names them: every row that was read from the store may be of a lane that is new here. A lane that is not stored
// either stays unknown; what is of it is counted nowhere. One that is loaded may be on notice: new jobs are not stored under it.
func (f *fold) learn(ctx context.Context, v View, ids []rules.LaneID) error {
	if len(ids) == 0 {
		return nil
	}
	lanes, err := v.LanesByID(ctx, ids)
	for id, l := range lanes {
		f.index.Add(id, l)
	}
	return err
}

// meetDue loads the lanes of waiting jobs that are new here.
func (p *pass) meetDue(ctx context.Context, due []Waiting) error {
	var ids []rules.LaneID
	for i := range due {
		ids = p.l.fold.unknown(ids, due[i].Turn.Lane)
	}
	return p.l.fold.learn(ctx, p.tx, ids)
}

// meetLeases loads the lanes of leases that are new here.
func (p *pass) meetLeases(ctx context.Context, leases map[lessor.LeaseID]*rules.Held) error {
	var ids []rules.LaneID
	for _, h := range leases {
		ids = p.l.fold.unknown(ids, h.Turn.Lane)
	}
	return p.l.fold.learn(ctx, p.tx, ids)
}

// lockJobs keeps jobs where they are, and brings the fold up to date with them.
func (p *pass) lockJobs(ctx context.Context, jobs []lessor.JobID) (map[lessor.JobID]*rules.Standing, error) {
	standings, err := p.tx.Lock(ctx, jobs)
	if err != nil {
		return nil, err
	}
	if err := p.follow(ctx); err != nil {
		return nil, err
	}
	var ids []rules.LaneID
	for _, st := range standings {
		ids = p.l.fold.unknown(ids, st.Turn.Lane)
	}
	return standings, p.l.fold.learn(ctx, p.tx, ids)
}

// stray is a job whose row names a lane that is not stored. Nobody knows its tenant and type, so nobody is granted it.
type stray struct {
	job   lessor.JobID
	lane  rules.LaneID
	place string
}

func (s stray) String() string { return fmt.Sprintf("job %s in %s of lane %d", s.job, s.place, s.lane) }

// strayed notes a row whose lane is not stored.
func (f *fold) strayed(place string, t rules.Turn) {
	if !f.index.Known(t.Lane) {
		f.strays = append(f.strays, stray{t.Job, t.Lane, place})
	}
}
