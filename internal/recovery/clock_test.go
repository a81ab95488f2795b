package recovery

import (
	"testing"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// The wall clock of the server and its store is set by a day, alone or together with that of the commands, while the
// server runs or is down. A live command is never dead or even stale. A silent one is stale after stale_after and dead
// after dead_after, each at most one check later. A lease without heartbeats expires as usual.
func TestServerClockSteps(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct{ server, commands time.Duration }{
		"ahead": {day, 0}, "back": {-day, 0}, "ahead with the commands'": {day, day},
		"back with the commands'": {-day, -day},
	} {
		t.Run(name, func(t *testing.T) {
			run := inWorld
			if c.commands == 0 {
				run = onEachStore
			}
			run(t, settings(), func(t *testing.T, w *world) {
				w.submit()
				live := w.take(longTTL)
				silent, lapses := w.silentPair(live)
				w.wantAlerts()
				set := func() {
					w.step.Add(int64(c.server))
					live.off += c.commands
				}
				set()
				w.watchDie(live, silent, lapses)
				w.halt()
				set()
				w.start()
				live.live(time.Minute)
				if j := live.want(lessor.Running); !j.Reattached {
					t.Error("after a restart the live command is not reattached")
				}
				silent, lapses = w.silentPair(live)
				w.sentAlerts = nil
				set()
				w.watchDie(live, silent, lapses)
			})
		})
	}
}

// silentPair starts two commands and lets them live for five minutes beside another; one holds its lease for hours, the
// other for a ttl.
func (w *world) silentPair(beside *command) (silent, lapses *command) {
	w.t.Helper()
	if _, err := w.Submit(w.ctx, anybody, lessor.Submission{
		Type:        new("long"),
		MaxAttempts: new(int64(1)),
	}); err != nil {
		w.t.Fatal(err)
	}
	silent = w.take(longTTL)
	silent.off = beside.off
	silent.pulse()
	lapses = w.command(func(s *lessor.Submission) { s.MaxAttempts = new(int64(1)) })
	for range 10 {
		beside.live(30 * time.Second)
		silent.pulse()
		silent.beat()
		lapses.pulse()
		lapses.beat()
	}
	return silent, lapses
}

// watchDie lets two commands fall silent while another goes on.
func (w *world) watchDie(live, silent, lapses *command) {
	w.t.Helper()
	live.live(90 * time.Second)
	lapses.want(lessor.Expired)
	silent.want(lessor.Running)
	live.live(2 * time.Minute)
	if got := silent.verdict(); got != lessor.HeartbeatStale {
		w.t.Errorf("a command that is silent for over 3 minutes is %q", got)
	}
	live.wantVerdict(lessor.HeartbeatFresh)
	silent.want(lessor.Running)
	live.live(8 * time.Minute)
	silent.wantEnd(string(rules.DeathHeartbeatStopped))
	live.want(lessor.Running)
	live.wantVerdict(lessor.HeartbeatFresh)
	for _, a := range w.sentAlerts {
		if a.Subject == live.id.String() {
			w.t.Errorf("an alert about the live command: %+v", a)
		}
	}
}

// The clock is set ahead while a restarted server waits for a command: its lease is still held to the end of the watch.
func TestWatchedLeaseIsHeldThroughAStep(t *testing.T) {
	onEachStore(t, settings(), func(t *testing.T, w *world) {
		back, lost := w.command(), w.command()
		w.restart(10 * time.Minute)
		w.pass(time.Minute)
		w.step.Add(int64(24 * time.Hour))
		w.pass(3 * time.Minute)
		back.want(lessor.Leased)
		back.pulse()
		back.beat()
		w.pass(30 * time.Second)
		if j := back.want(lessor.Running); !j.Reattached {
			t.Error("the command is not reattached")
		}
		w.pass(30*time.Second + aTick)
		lost.wantEnd(string(rules.DeathNotResumed))
	})
}
