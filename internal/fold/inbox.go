package fold

import (
	"lessor"
	"lessor/internal/rules"
)

// inbox holds, for each job with messages that its worker has not seen, the number of the last one. A heartbeat reads
// the messages only of jobs that are in it. Streams have no common order, so a number never falls: an older step of
// another node cannot hide a newer message. A number may stay too high; a heartbeat that finds no message corrects it.
type inbox map[lessor.JobID]int64

// Unseen returns the number of the last message that the worker of a job has not seen; 0 if there is none.
func (f *Fold) Unseen(job lessor.JobID) int64 { return f.inbox[job] }

// LoadMessages adds a job with messages that was read from the table.
func (f *Fold) LoadMessages(job lessor.JobID, last int64) { f.inbox[job] = max(f.inbox[job], last) }

// Message notes that a message was sent to a job. h is the job's lease, nil if it has none.
func (f *Fold) Message(job lessor.JobID, n int64, h *rules.Held, at lessor.Instant) {
	f.LoadMessages(job, n)
	if f.packer != nil {
		f.packer.message(stepMessage, job, n)
	}
	if h == nil {
		return
	}
	f.call(h, at, Messaged)
	if f.packer != nil {
		f.packer.called(stepMessaged, h, at)
	}
}

// Seen notes that the worker of a job has seen its messages up to number n, or that they are not kept.
func (f *Fold) Seen(job lessor.JobID, n int64) {
	f.seen(job, n)
	if f.packer != nil {
		f.packer.message(stepSeen, job, n)
	}
}

func (f *Fold) seen(job lessor.JobID, n int64) {
	if f.inbox[job] <= n {
		delete(f.inbox, job)
	}
}

func (p *packer) message(kind byte, job lessor.JobID, n int64) {
	if p.step(kind) {
		p.data = append(p.data, job.UUID[:]...)
		p.ints(n)
	}
}

// lacks reports whether tables have a message that the inbox does not.
func (b inbox) lacks(tables inbox) bool {
	for job, n := range tables {
		if b[job] < n {
			return true
		}
	}
	return false
}
