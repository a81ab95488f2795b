package memory

import (
	"context"
	"math"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// Standings implements scheduler.View.
func (v *view) Standings(_ context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Standing, error) {
	standings := make(map[lessor.JobID]*rules.Standing, len(ids))
	s := v.read("read standings")
	s.standings(ids, standings)
	return standings, v.err
}

func (s *tables) standings(ids []lessor.JobID, into map[lessor.JobID]*rules.Standing) {
	for _, id := range ids {
		if j, ok := s.jobs.get(key{id: id.UUID}); ok {
			into[id] = j.show()
		}
	}
}

// Histories implements scheduler.View.
func (v *view) Histories(_ context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.History, error) {
	histories := make(map[lessor.JobID]*rules.History, len(ids))
	s := v.read("read histories")
	for _, id := range ids {
		j, ok := s.jobs.get(key{id: id.UUID})
		if !ok {
			continue
		}
		h := &rules.History{Standing: *j.show()}
		for _, a := range s.attempts.under("", id.UUID) {
			h.Attempts = append(h.Attempts, *a)
		}
		for _, n := range s.notes.under("", id.UUID) {
			h.Notes = append(h.Notes, n)
		}
		histories[id] = h
	}
	return histories, v.err
}

// readPerPage bounds the cost of a page when few jobs match.
const readPerPage = 20_000

// afterAll is behind every id.
var afterAll = lessor.UUID{
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
}

// before returns the bound of a list that begins after an id, newest first; nil begins with the newest.
func before[T interface{ ~struct{ lessor.UUID } }](after *T) key {
	if after == nil {
		return key{id: afterAll}.last()
	}
	return key{id: struct{ lessor.UUID }(*after).UUID}
}

// List implements scheduler.View.
func (v *view) List(_ context.Context, q scheduler.ListQuery) (p scheduler.ListPage, err error) {
	s := v.read("list jobs")
	if q.Limit <= 0 {
		return p, v.err
	}
	read, last := 0, (*lessor.JobID)(nil)
	for k, j := range s.jobs.back(before(q.After)) {
		if read == readPerPage || len(p.Standings) == q.Limit {
			p.Next = last
			break
		}
		read++
		last = &lessor.JobID{UUID: k.id}
		if j.matches(&q) {
			p.Standings = append(p.Standings, j.show())
		}
	}
	return p, v.err
}

func (j *job) matches(q *scheduler.ListQuery) bool {
	return q.MatchesPlace(j.Place, (*rules.Standing)(j).State(), j.Turn.Fence) && q.MatchesLane(&j.Spec.Lane) &&
		(q.Tag == "" || slices.Contains(j.Spec.Tags, q.Tag)) && (q.Trace == "" || j.Spec.TraceID == q.Trace)
}

// OpenRuns implements scheduler.View.
func (v *view) OpenRuns(
	_ context.Context, definitions []*rules.Definition, limit int,
) (map[string][]scheduler.OpenRun, error) {
	open := make(map[string][]scheduler.OpenRun)
	s := v.read("read open runs")
	for _, d := range definitions {
		for k, j := range s.runs.from(key{text: d.ID, n: math.MinInt64}) {
			if k.text != d.ID || len(open[d.ID]) >= limit {
				break
			}
			if j.Spec.Lane.Tenant == d.Tenant {
				run := scheduler.OpenRun{Job: j.Spec.ID, Claimed: j.Turn.Fence != 0}
				open[d.ID] = append(open[d.ID], run)
			}
		}
	}
	return open, v.err
}
