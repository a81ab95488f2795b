package fold

import (
	"fmt"
	"maps"
	"slices"

	"lessor"
	"lessor/internal/rules"
)

// AddLane registers a lane that was read from its table. New jobs are not stored under one that is on notice.
func (f *Fold) AddLane(id rules.LaneID, l rules.Lane, noticed bool) {
	if f.Index.Add(id, l); !noticed {
		f.lanes[l] = id
	}
}

// LearnLanes registers lanes that other nodes made. One of them may be on notice, so new jobs are not stored under it.
func (f *Fold) LearnLanes(lanes map[rules.LaneID]rules.Lane) {
	for _, id := range slices.Sorted(maps.Keys(lanes)) { // equals take turns in the order in which they were added
		f.Index.Add(id, lanes[id])
	}
}

// Unknown appends a lane to ids if the fold does not know it.
func (f *Fold) Unknown(ids []rules.LaneID, lane rules.LaneID) []rules.LaneID {
	if f.Index.Known(lane) {
		return ids
	}
	return append(ids, lane)
}

// LaneID returns the number under which new jobs of a lane may be stored.
func (f *Fold) LaneID(l rules.Lane) (rules.LaneID, bool) {
	id, ok := f.lanes[l]
	return id, ok
}

// NoticeLane forgets the number of a lane, which must not be used for new jobs any more. The jobs of the lane are still
// known by it.
func (f *Fold) NoticeLane(id rules.LaneID) {
	f.noticed(id)
	if f.packer != nil {
		f.packer.lane(stepNoticed, id)
	}
}

// DropLane forgets a lane that is not stored any more.
func (f *Fold) DropLane(id rules.LaneID) {
	f.dropped(id)
	if f.packer != nil {
		f.packer.lane(stepDropped, id)
	}
}

func (f *Fold) noticed(id rules.LaneID) {
	if l := f.Index.Lane(id); f.lanes[l] == id {
		delete(f.lanes, l)
	}
}

func (f *Fold) dropped(id rules.LaneID) {
	f.noticed(id)
	f.Index.Drop(id)
}

// stray is a job whose row names a lane that is not stored. Its tenant and type are unknown, so it is never granted.
type stray struct {
	job   lessor.JobID
	lane  rules.LaneID
	place string
}

func (s stray) String() string { return fmt.Sprintf("job %s in %s of lane %d", s.job, s.place, s.lane) }

func (f *Fold) noteStray(place string, t rules.Turn) {
	if !f.Index.Known(t.Lane) {
		f.strays = append(f.strays, stray{t.Job, t.Lane, place})
	}
}

// LeaveOut notes a queued job that is not granted because its rows contradict each other.
func (f *Fold) LeaveOut(t rules.Turn) { f.strays = append(f.strays, stray{t.Job, t.Lane, "queue"}) }
