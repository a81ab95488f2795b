package fold

import (
	"lessor"
	"lessor/internal/rules"
)

// Woken is what happened that may concern a call that waits. The turns that Index.Opened names are not part of it.
type Woken struct {
	All     bool           // something that may concern every request: settings changed
	Freed   bool           // capacity became free
	Turned  bool           // a job was queued or granted: another may be first now
	Workers []rules.Holder // gave a lease back, or were granted one on another node
}

// Called is a lease whose worker must be notified before its next heartbeat.
type Called struct {
	Lease  lessor.LeaseID
	Holder rules.Holder
	Token  lessor.TokenID // with which it was taken
	At     lessor.Instant
	Why    Why
}

// Why says what a worker is notified of.
type Why uint8

const (
	// Cancelled means that the worker was asked to stop.
	Cancelled Why = iota
	// TakenAway means that the lease is over.
	TakenAway
	// Messaged means that the job has a message.
	Messaged
)

// maxWoken bounds the workers and the called leases that are remembered. With more workers, every request is tried;
// more leases are left to their heartbeats.
const maxWoken = 4096

// WakeAll has every waiting request tried.
func (f *Fold) WakeAll() { f.woken.All = true }

// TakeWoken returns what happened since it was last called. The list of workers is valid until the fold changes.
func (f *Fold) TakeWoken() Woken {
	w := f.woken
	f.woken = Woken{Workers: w.Workers[:0]}
	return w
}

// TakeCalled returns the leases whose workers must be notified since it was last called. After a rebuild these are all
// that were asked to stop or that have messages, but none that were taken away.
func (f *Fold) TakeCalled() []Called {
	called := f.called
	f.called = nil
	return called
}

func (f *Fold) call(h *rules.Held, at lessor.Instant, why Why) {
	if len(f.called) < maxWoken {
		f.called = append(f.called, Called{h.ID, h.Holder(), h.Token, at, why})
	}
}

func (f *Fold) wakeWorker(h rules.Holder) {
	if len(f.woken.Workers) == maxWoken {
		f.woken.All, f.woken.Workers = true, f.woken.Workers[:0]
	}
	f.woken.Workers = append(f.woken.Workers, h)
}
