package rules

import (
	"bytes"
	"crypto/sha256"
)

// Mark is how far a job had come at some moment.
type Mark struct {
	Progress   float64 // the highest that it ever reported
	Checkpoint []byte  // a hash of its checkpoint; nil = it had none
}

// mark returns how far a job has come, by all that counts as a sign of progress. A nil report is of a job that never
// sent one.
func (r *Report) mark() Mark {
	var m Mark
	if r == nil {
		return m
	}
	for _, p := range []*float64{r.Highest, r.Progress} {
		if p != nil {
			m.Progress = max(m.Progress, *p)
		}
	}
	if r.Checkpoint != nil {
		sum := sha256.Sum256(r.Checkpoint)
		m.Checkpoint = sum[:]
	}
	return m
}

// Moved reports whether a job has shown progress since its last release that counted: a progress above all before, or
// a checkpoint other than that of then.
func (r *Report) Moved() bool {
	if r == nil {
		return false
	}
	var then Mark
	if r.Mark != nil {
		then = *r.Mark
	}
	now := r.mark()
	return now.Progress > then.Progress || now.Checkpoint != nil && !bytes.Equal(now.Checkpoint, then.Checkpoint)
}

// Released decides whether a job that has reported r has moved when a release e says last of it, and returns last with
// the mark that the release leaves.
func Released(e *End, r, last Report) Report {
	next := r.Merge(last)
	if e.Moved = next.Moved(); e.Moved && !e.Uncounted {
		last.Mark = new(next.mark())
	}
	return last
}

// Merge returns r with what a later report says: fields that are left out stay as they are.
func (r Report) Merge(later Report) Report {
	if later.Progress != nil {
		r.Progress = later.Progress
	}
	if later.Message != nil {
		r.Message = later.Message
	}
	if later.Checkpoint != nil {
		r.Checkpoint = later.Checkpoint
	}
	if later.Highest != nil && (r.Highest == nil || *later.Highest > *r.Highest) {
		r.Highest = later.Highest
	}
	if later.Mark != nil {
		r.Mark = later.Mark
	}
	r.At = later.At
	return r
}

// interruptions is how often the job was released since its last sign of progress.
func (s *Standing) interruptions() int {
	if s.Turn.Interruptions == 0 || s.Report.Moved() {
		return 0
	}
	return s.Turn.Interruptions
}
