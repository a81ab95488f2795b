package rules

import (
	"bytes"
	"crypto/sha256"
)

// Progress is how far a job had come at some moment.
type Progress struct {
	Progress   float64 // the highest so far
	Checkpoint []byte  // a hash of the checkpoint; nil = none
}

// reached returns the progress of a job. A nil report belongs to a job that never sent one.
func (r *Report) reached() Progress {
	var m Progress
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

// Empty reports whether r says nothing.
func (r *Report) Empty() bool {
	return r.Progress == nil && r.Message == nil && r.Checkpoint == nil && r.Interrupted == nil && r.Question == nil
}

// Moved reports whether a job has shown progress since its last interruption: a higher progress than ever before, or
// another checkpoint.
func (r *Report) Moved() bool {
	if r == nil {
		return false
	}
	var then Progress
	if r.Interrupted != nil {
		then = *r.Interrupted
	}
	now := r.reached()
	return now.Progress > then.Progress || now.Checkpoint != nil && !bytes.Equal(now.Checkpoint, then.Checkpoint)
}

// Released sets e.Moved of a release e of the lease h, for a job that has reported r and, with the release, last. It
// returns last, with the progress at the release if the job has moved.
func Released(h *Held, e *End, r, last Report) Report {
	next := r.Merge(last)
	if e.Moved = next.Moved() || h.Journaled(); e.Moved && !e.Uncounted {
		last.Interrupted = new(next.reached())
	}
	return last
}

// Merge returns r updated by a later report. Fields that the later report leaves out stay.
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
	if later.Interrupted != nil {
		r.Interrupted = later.Interrupted
	}
	if later.Question != nil {
		r.Question = later.Question
	}
	if later.Entries != nil {
		r.Entries = later.Entries
	}
	r.Sent, r.Seen = max(r.Sent, later.Sent), max(r.Seen, later.Seen)
	r.At = later.At
	return r
}

// interruptions returns how often the job was interrupted since its last progress.
func (s *Standing) interruptions() int {
	if s.Turn.Interruptions == 0 || s.Report.Moved() || s.Held != nil && s.Held.Journaled() {
		return 0
	}
	return s.Turn.Interruptions
}
