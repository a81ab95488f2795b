package scheduler

import (
	"testing"
	"time"

	"lessor"
	"lessor/internal/fold"
	"lessor/internal/lanes"
	"lessor/internal/rules"
)

// TestNodesAgreeOnTheJobThatStarves: of the job that starves on this node and that of another, the one that has starved
// longest counts, if it is queued and asked for.
func TestNodesAgreeOnTheJobThatStarves(t *testing.T) {
	const lane, own, other, gone = 1, 10, 20, 30
	ago := func(d time.Duration) lessor.Instant { return noon.Add(-d) }
	job := func(seq int64, since, asked time.Duration) starvingJob {
		return starvingJob{lane: lane, seq: seq, since: ago(since), askedAt: ago(asked)}
	}
	note := func(seq int64, since, asked time.Duration) starvingNote {
		return starvingNote{Lane: lane, Seq: seq, Since: ago(since), AskedAt: ago(asked)}
	}
	for _, c := range []struct {
		name  string
		is    starvingJob
		other starvingNote
		want  starvingJob
	}{
		{"none here", starvingJob{}, note(other, time.Minute, time.Second), job(other, time.Minute, time.Second)},
		{"here later", job(own, 59*time.Second, 0), note(other, time.Minute, 0), job(other, time.Minute, 0)},
		{"here earlier", job(own, 61*time.Second, 0), note(other, time.Minute, 0), job(own, 61*time.Second, 0)},
		{"at once", job(own, time.Minute, 0), note(other, time.Minute, 0), job(own, time.Minute, 0)},
		{
			"the same", job(own, 3*time.Second, 2*time.Second), note(own, time.Minute, time.Second),
			job(own, time.Minute, time.Second),
		},
		{"ended there", starvingJob{}, note(gone, time.Minute, 0), starvingJob{}},
		{"ended here", job(gone, time.Hour, 0), note(other, time.Minute, 0), job(other, time.Minute, 0)},
		{"asked for long ago there", starvingJob{}, note(other, time.Hour, workerLife+time.Second), starvingJob{}},
		{
			"asked for long ago here", job(own, time.Hour, workerLife+time.Second), note(other, time.Minute, 0),
			job(other, time.Minute, 0),
		},
		{"of another release", starvingJob{}, starvingNote{Lane: lane, Seq: other, AskedAt: noon}, starvingJob{}},
	} {
		f := fold.New(func(lessor.TenantID) lanes.Policy { return lanes.Policy{} })
		f.AddLane(lane, rules.Lane{Type: "large", Units: 4}, false)
		for _, seq := range []int64{own, other} {
			f.LoadQueued(rules.Turn{Lane: lane, Seq: seq})
		}
		l := &loop{Scheduler: &Scheduler{}, fold: f, starving: c.is}
		l.adoptStarving(&c.other, noon)
		if c.want.seq == other {
			c.want.of = f.Index.Lane(lane)
		}
		if l.starving != c.want {
			t.Errorf("%s: %+v starves, want %+v", c.name, l.starving, c.want)
		}
	}
}
