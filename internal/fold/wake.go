package fold

import "lessor/internal/rules"

// Woken is what happened that may let a waiting request have a lease, besides the turns that Index.Opened names.
type Woken struct {
	All     bool           // something that may concern every request: settings changed
	Freed   bool           // capacity became free
	Workers []rules.Holder // gave a lease back, or were granted one on another node
}

// maxWoken bounds the workers that are remembered; with more, every request is tried.
const maxWoken = 4096

// WakeAll has every waiting request tried.
func (f *Fold) WakeAll() { f.woken.All = true }

// TakeWoken returns what happened since it was last called. The list of workers is valid until the fold changes.
func (f *Fold) TakeWoken() Woken {
	w := f.woken
	f.woken = Woken{Workers: w.Workers[:0]}
	return w
}

func (f *Fold) wakeWorker(h rules.Holder) {
	if len(f.woken.Workers) == maxWoken {
		f.woken.All, f.woken.Workers = true, f.woken.Workers[:0]
	}
	f.woken.Workers = append(f.woken.Workers, h)
}
