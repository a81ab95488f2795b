package fold

import (
	"lessor"
	"lessor/internal/rules"
)

// Woken is what happened that may concern a call that waits. The turns that Index.Opened names are not part of it.
type Woken struct {
	All     bool           // something that may concern every request: settings changed
	Freed   bool           // capacity became free
	Workers []rules.Holder // gave a lease back, or were granted one on another node
	// Cancelled are the leases whose workers were asked to stop, and after a rebuild all that are asked to.
	Cancelled []Cancelled
}

// Cancelled is a lease whose worker was asked to stop.
type Cancelled struct {
	Lease  lessor.LeaseID
	Holder rules.Holder
	Token  lessor.TokenID // with which it was taken
	At     lessor.Instant
}

// maxWoken bounds the workers and the cancelled leases that are remembered. With more workers, every request is tried;
// more cancelled leases are left to the heartbeats.
const maxWoken = 4096

// WakeAll has every waiting request tried.
func (f *Fold) WakeAll() { f.woken.All = true }

// TakeWoken returns what happened since it was last called. The list of workers is valid until the fold changes.
func (f *Fold) TakeWoken() Woken {
	w := f.woken
	f.woken = Woken{Workers: w.Workers[:0]}
	return w
}

func (f *Fold) cancelled(h *rules.Held) {
	if h.CancelAt != 0 && len(f.woken.Cancelled) < maxWoken {
		f.woken.Cancelled = append(f.woken.Cancelled, Cancelled{h.ID, h.Holder(), h.Token, h.CancelAt})
	}
}

func (f *Fold) wakeWorker(h rules.Holder) {
	if len(f.woken.Workers) == maxWoken {
		f.woken.All, f.woken.Workers = true, f.woken.Workers[:0]
	}
	f.woken.Workers = append(f.woken.Workers, h)
}
