package chaos

import (
	"math/rand/v2"
	"sync"
	"syscall"
	"time"
)

// troubles are faults that may meet each other. None of them loses what was acknowledged. No clock is set: libfaketime
// opens a file whenever a time-out of the server fires, and blocks for ever if that interrupts its own opening of it.
var troubles = map[string]func(w *shared) error{
	"node stopped": func(w *shared) error {
		n := w.anyNode()
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.cmd == nil {
			return nil // it was killed
		}
		if err := n.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		time.Sleep(rand.N(2 * loadTTL))
		return n.cmd.Process.Signal(syscall.SIGCONT)
	},
	"node killed": func(w *shared) error {
		w.anyNode().restart(time.Second)
		return nil
	},
	"backends ended": func(w *shared) error {
		for range 4 {
			_, _ = w.db.Ask(w.Context(), endBackends) // the database may be down
			time.Sleep(rand.N(400 * time.Millisecond))
		}
		return nil
	},
	"database killed": func(w *shared) error {
		if err := w.db.Kill(); err != nil {
			return err
		}
		time.Sleep(rand.N(2 * time.Second))
		return w.db.Up(w.Context())
	},
	"connections cut": func(w *shared) error {
		w.proxy.set([]mode{cut, deaf, mute}[rand.IntN(3)])
		time.Sleep(rand.N(2 * loadTTL))
		w.proxy.set(open)
		return nil
	},
	"table locked": func(w *shared) error { // by a person, who has begun a transaction
		_ = w.db.Hold(w.Context(), "lock table job in exclusive mode", func() { time.Sleep(rand.N(loadTTL)) })
		return nil // the database may be down
	},
}

// severalAtOnce has two or three troubles meet, again and again.
func severalAtOnce(w *shared) {
	w.l.outagesAreFree.Store(false) // a worker may meet one fault while it turns to another server because of the first
	for until := time.Now().Add(*limitFlag); time.Now().Before(until); w.l.more(10) {
		left := 2 + rand.IntN(2)
		var all sync.WaitGroup
		for name, happen := range troubles { // in an order that differs each time
			if left--; left < 0 {
				break
			}
			all.Go(func() {
				time.Sleep(rand.N(loadTTL))
				begin := w.l.h.now()
				if err := happen(w); err != nil {
					w.Errorf("%s: %v", name, err)
				}
				w.Logf("%s from %v to %v", name, begin, w.l.h.now())
			})
		}
		all.Wait()
	}
}

func (w *shared) anyNode() *server { return w.nodes[rand.IntN(len(w.nodes))] }
