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
	// Cancelled are the leases whose workers must stop. After a rebuild these are all that were asked to, but none that
	// were taken away.
	Cancelled []Cancelled
}

// Cancelled is a lease whose worker must stop: it was asked to, or the lease was taken away.
type Cancelled struct {
	Lease  lessor.LeaseID
	Holder rules.Holder
	Token  lessor.TokenID // with which it was taken
	At     lessor.Instant
	Over   bool // it was taken away
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

func (f *Fold) cancelled(h *rules.Held, at lessor.Instant, over bool) {
	if len(f.woken.Cancelled) < maxWoken {
		f.woken.Cancelled = append(f.woken.Cancelled, Cancelled{h.ID, h.Holder(), h.Token, at, over})
	}
}

func (f *Fold) wakeWorker(h rules.Holder) {
	if len(f.woken.Workers) == maxWoken {
		f.woken.All, f.woken.Workers = true, f.woken.Workers[:0]
	}
	f.woken.Workers = append(f.woken.Workers, h)
}
