package chaos

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"lessor"
	"lessor/internal/pgtest"
)

// shared is three nodes on PostgreSQL, under load.
type shared struct {
	*testing.T
	db, standby *pgtest.Server
	proxy       *proxy
	pooler      *pgtest.Pooler
	nodes       []*server
	l           *load
}

// sharedFault is a fault that nodes on PostgreSQL must survive. Unless it says otherwise, nothing acknowledged is lost,
// and no lease of a worker that sends heartbeats ends.
type sharedFault struct {
	options pgtest.Options
	reach   func(w *shared) (url string) // prepares what lies between nodes and database; nil = nothing
	happen  func(w *shared)
}

var sharedFaults = map[string]sharedFault{
	"node stopped for longer than the ttl": {happen: func(w *shared) {
		must(w.T, w.nodes[0].cmd.Process.Signal(syscall.SIGSTOP))
		time.Sleep(loadTTL * 3 / 2)
		must(w.T, w.nodes[0].cmd.Process.Signal(syscall.SIGCONT))
	}},
	"backends end and crash": {happen: func(w *shared) {
		for range 8 {
			w.ask(endBackends)
			time.Sleep(200 * time.Millisecond)
		}
		var pid int
		_, err := fmt.Sscan(w.ask("select pid from pg_stat_activity where backend_type = 'client backend' limit 1"),
			&pid)
		must(w.T, err)
		must(w.T, syscall.Kill(pid, syscall.SIGKILL)) // the server then restarts all of its processes
	}},
	"synchronous standby promoted": {reach: synchronous, happen: func(w *shared) {
		must(w.T, w.db.Kill())
		must(w.T, w.standby.Promote(w.Context()))
	}},
	"synchronous standby hangs, waits are cancelled, it is promoted": {reach: synchronous, happen: func(w *shared) {
		must(w.T, w.standby.Pause())
		for end := time.Now().Add(2 * loadTTL); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
			w.ask("select count(pg_cancel_backend(pid)) from pg_stat_activity where wait_event = 'SyncRep'")
		}
		must(w.T, w.db.Kill())
		must(w.T, w.standby.Resume())
		must(w.T, w.standby.Promote(w.Context()))
	}},
	"asynchronous standby promoted, several hosts": {reach: asynchronous, happen: losesCommits},
	"asynchronous standby promoted, pgbouncer": {reach: func(w *shared) string {
		asynchronous(w)
		pooler, err := pgtest.StartPooler(w.Context(), w.db, pgtest.SessionMode)
		must(w.T, err)
		w.Cleanup(func() { must(w.T, pooler.Stop()) })
		w.pooler = pooler
		return pooler.URL("postgres")
	}, happen: losesCommits},
	"asynchronous standby promoted, haproxy": {reach: func(w *shared) string {
		asynchronous(w)
		return "postgres://postgres@" + haproxy(w.T, w.db.Socket(), w.standby.Socket()) + "/postgres?sslmode=disable"
	}, happen: losesCommits},
	"older copy restored": {happen: func(w *shared) {
		must(w.T, w.db.Kill())
		must(w.T, w.db.Copy(w.Context()))
		must(w.T, w.db.Up(w.Context()))
		w.l.more(20)
		w.l.outagesAreFree.Store(false) // leases that were granted since the copy are lost
		w.l.h.goesBack(func() {
			must(w.T, w.db.Kill())
			must(w.T, w.db.Restore(w.Context()))
			must(w.T, w.db.Up(w.Context()))
		})
		w.wantLossAlert("changes")
	}},
	"full disk":    {happen: func(w *shared) { w.injectDisk("pwrite64,fallocate,ftruncate:error=ENOSPC") }},
	"failed fsync": {happen: func(w *shared) { w.injectDisk("fsync,fdatasync:error=EIO") }},
	"slow fsync":   {happen: func(w *shared) { w.injectDisk("fsync,fdatasync:delay_exit=1500000") }},
	"connections cut and half cut": {reach: proxied, happen: func(w *shared) {
		for _, m := range []mode{cut, deaf, mute, mute} {
			w.proxy.set(m)
			time.Sleep(loadTTL)
			w.proxy.set(open)
			w.l.more(5)
		}
	}},
	"clock of the database stepped": {options: pgtest.Options{FakeClock: "set below"}, happen: func(w *shared) {
		w.l.h.stepped.Store(true)
		for _, d := range []time.Duration{30 * time.Second, 0, -20 * time.Second, time.Hour, 0} {
			must(w.T, w.db.Step(d))
			time.Sleep(loadTTL / 2)
			w.l.more(10)
		}
	}},
	"clocks of nodes stepped": {happen: func(w *shared) {
		var clocks []*clock
		for _, n := range w.nodes {
			clocks = append(clocks, newClock(w.T, n))
		}
		for _, d := range []time.Duration{30 * time.Second, -20 * time.Second, time.Hour, 0} {
			for i, c := range clocks {
				c.step(time.Duration(i-1) * d) // one is behind, one ahead
			}
			time.Sleep(loadTTL / 2)
			w.l.more(10)
		}
	}},
	"several at once": {reach: proxied, happen: severalAtOnce},
}

const endBackends = "select count(pg_terminate_backend(pid)) from pg_stat_activity where pid <> pg_backend_pid()"

// TestHistoriesOnPostgreSQL runs each fault.
func TestHistoriesOnPostgreSQL(t *testing.T) {
	t.Parallel()
	for name, fault := range sharedFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if fault.options.Durable = true; fault.options.FakeClock != "" {
				fault.options.FakeClock = pgtest.FakeClock(t)
			}
			w := &shared{T: t, db: database(t, fault.options)}
			url := w.db.URL("postgres")
			if fault.reach != nil {
				url = fault.reach(w)
			}
			w.nodes = clusterAt(t, w.db, url).nodes
			w.l = startLoad(t, w.nodes...)
			w.l.more(30)
			fault.happen(w)
			w.l.more(30)
			w.l.finish()
		})
	}
}

func (w *shared) ask(text string) string {
	w.Helper()
	value, err := w.db.Ask(w.Context(), text)
	must(w.T, err)
	return value
}

func proxied(w *shared) string {
	w.proxy = newProxy(w.T, "unix", w.db.Socket())
	return "postgres://postgres@" + w.proxy.addr() + "/postgres?sslmode=disable"
}

func asynchronous(w *shared) string {
	standby, err := w.db.Standby(w.Context())
	must(w.T, err)
	stopDatabase(w.T, standby)
	w.Cleanup(func() { _ = standby.Resume() }) // or it would not stop
	w.standby = standby
	return w.db.BothURL(standby)
}

func synchronous(w *shared) string {
	url := asynchronous(w)
	must(w.T, w.db.Synchronous(w.Context(), true))
	return url
}

// losesCommits promotes a standby that lacks the newest commits.
func losesCommits(w *shared) {
	must(w.T, w.standby.Catch(w.Context(), w.db))
	must(w.T, w.standby.Cut(w.Context()))
	w.l.more(20)
	w.l.outagesAreFree.Store(false) // leases that the standby does not have are lost
	w.l.h.goesBack(func() {
		must(w.T, w.db.Kill())
		must(w.T, w.standby.Promote(w.Context()))
		if w.pooler != nil {
			must(w.T, w.pooler.Switch(w.Context(), w.standby))
		}
	})
	w.wantLossAlert("the last commit that is left was made at 20")
}

// wantLossAlert waits for the alert that says what was lost.
func (w *shared) wantLossAlert(what string) {
	w.Helper()
	c := w.nodes[0].client()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		alerts, _, err := c.Alerts(w.Context(), lessor.AlertFilter{Limit: 100})
		at := slices.IndexFunc(alerts, func(a lessor.Alert) bool { return a.Kind == lessor.AlertStoreWentBack })
		if err == nil && at >= 0 {
			if w.Log(alerts[at].Message); !strings.Contains(alerts[at].Message, what) {
				w.Errorf("the alert does not say %q", what)
			}
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("there is no alert that the store went back: %v, %v", alerts, err)
		}
	}
}

// injectDisk has the disk of the database fail or hang for longer than the ttl. A database that gave up is started
// again.
func (w *shared) injectDisk(fault string) {
	w.Helper()
	end := inject(w.T, fault, w.db.Processes()...)
	time.Sleep(loadTTL * 3 / 2)
	end()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if _, err := w.db.Ask(w.Context(), "select 1"); err == nil {
			return
		}
	}
	must(w.T, w.db.Kill())
	must(w.T, w.db.Up(w.Context()))
}

// haproxy starts a proxy that turns to the second server when the first does not answer, and returns its address.
func haproxy(t *testing.T, first, second string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := ln.Addr().String()
	must(t, ln.Close())
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	text := fmt.Sprintf(`global
  unix-bind mode 777
defaults
  mode tcp
  timeout connect 1s
  timeout client 1h
  timeout server 1h
listen database
  bind %s
  server first unix@%s check inter 200ms on-marked-down shutdown-sessions
  server second unix@%s check inter 200ms backup
`, addr, first, second)
	must(t, os.WriteFile(file, []byte(strings.TrimSpace(text)+"\n"), 0o600))
	cmd := exec.Command("haproxy", "-db", "-f", file)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
			return addr
		}
		if time.Now().After(deadline) {
			t.Fatalf("haproxy does not answer: %v", err)
		}
	}
}
