package chaos

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sole is the only server on SQLite, under load.
type sole struct {
	*testing.T
	s *server
	l *load
}

// The faults that a server on SQLite must survive, each under load. Unless a fault says otherwise, nothing acknowledged
// is lost, and no lease of a worker that sends heartbeats ends.
var soleFaults = map[string]func(w *sole){
	"stopped for longer than the ttl": func(w *sole) {
		must(w.T, w.s.cmd.Process.Signal(syscall.SIGSTOP))
		time.Sleep(loadTTL * 3 / 2)
		must(w.T, w.s.cmd.Process.Signal(syscall.SIGCONT))
	},
	"full disk": func(w *sole) {
		end := inject(w.T, "pwrite64,ftruncate,fallocate:error=ENOSPC", w.pid())
		w.untilReadySays("full")
		time.Sleep(loadTTL * 3 / 2)
		end()
	},
	"failed fsync": func(w *sole) {
		end := inject(w.T, "fsync,fdatasync:error=EIO", w.pid())
		defer end()
		w.wantExit(3)
		w.s.start()
	},
	"slow fsync": func(w *sole) {
		end := inject(w.T, "fsync,fdatasync:delay_exit=1500000", w.pid())
		time.Sleep(2 * loadTTL)
		end()
	},
	"database file moved away": func(w *sole) {
		db := filepath.Join(w.s.data, "lessor.db")
		must(w.T, os.Rename(db, db+".away"))
		w.wantExit(3)
		must(w.T, os.Rename(db+".away", db))
		w.s.start()
	},
	"backup restored while workers go on": func(w *sole) {
		copied := filepath.Join(w.TempDir(), "copy.db")
		command(w.T, ".", binary, "backup", "--server", "http://"+w.s.addr, "--data", w.s.data, "--to", copied)
		w.l.more(30)
		w.l.outagesAreFree.Store(false) // leases that were granted since the backup are lost
		w.l.h.goesBack(func() {
			w.s.kill()
			for _, old := range []string{"lessor.db", "lessor.db-wal", "lessor.db-shm", "lessor.db-mark"} {
				must(w.T, os.RemoveAll(filepath.Join(w.s.data, old)))
			}
			must(w.T, os.Rename(copied, filepath.Join(w.s.data, "lessor.db")))
			w.s.start()
		})
		time.Sleep(2 * loadTTL) // the workers of lost leases have learnt it
	},
	"clock stepped": func(w *sole) {
		w.l.h.stepped.Store(true)
		c := newClock(w.T, w.s)
		for _, d := range []time.Duration{30 * time.Second, 0, -20 * time.Second, time.Hour, 0, time.Hour} {
			c.step(d)
			time.Sleep(loadTTL / 2)
			w.l.more(10)
		}
		w.s.restart(100 * time.Millisecond) // with the machine's clock: an hour back
	},
	"connections cut and half cut": func(w *sole) {
		w.l.outagesAreFree.Store(false) // the server serves, and its workers do not reach it
		for _, m := range []mode{cut, deaf, mute, cut, mute} {
			w.l.proxy.set(m)
			time.Sleep(loadTTL / 3)
			w.l.proxy.set(open)
			w.l.more(5)
		}
	},
}

// TestHistoriesOnSQLite runs each fault.
func TestHistoriesOnSQLite(t *testing.T) {
	t.Parallel()
	for name, fault := range soleFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, loadSettings()...)
			w := &sole{t, s, nil}
			if strings.Contains(name, "connections") {
				w.l = startLoadThrough(t, newProxy(t, "tcp", s.addr))
			} else {
				w.l = startLoad(t, s)
			}
			w.l.more(30)
			fault(w)
			w.l.more(30)
			w.l.finish()
		})
	}
}

func (w *sole) pid() int { return w.s.cmd.Process.Pid }

func (w *sole) wantExit(code int) {
	w.Helper()
	if got := w.s.wait(); got != code {
		w.Errorf("the server exited with %d, want %d", got, code)
	}
}

// untilReadySays waits until the server is not ready, and names the cause.
func (w *sole) untilReadySays(cause string) {
	w.Helper()
	c := w.s.client()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		err := c.Ready(ctx)
		cancel()
		if err != nil && strings.Contains(err.Error(), cause) {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("ready says %v, want the cause %q", err, cause)
		}
	}
}
