package scheduler

import (
	"lessor"
	"lessor/internal/rules"
)

// MatchesPlace reports whether a list contains a job in this place and state. A fence of 0 is that of a job that was
// never granted.
func (q *ListQuery) MatchesPlace(p rules.Place, s lessor.State, fence int64) bool {
	claimed := fence != 0
	return (q.State == "" || s == q.State) && (!q.Claimed || claimed) &&
		(q.Status == "" || claimed && rules.RunStatus(p, s) == q.Status)
}

// FiltersLanes reports whether a job matches only if its lane does.
func (q *ListQuery) FiltersLanes() bool { return q.Type != "" || q.Tenant != nil || q.Definition != "" }

// MatchesLane reports whether a list contains jobs of this lane.
func (q *ListQuery) MatchesLane(l *rules.Lane) bool {
	return (q.Type == "" || l.Type == q.Type) && (q.Tenant == nil || l.Tenant == *q.Tenant) &&
		(q.Definition == "" || l.Definition == q.Definition)
}
