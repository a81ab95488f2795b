package top

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"lessor"
)

const now = lessor.Instant(1_800_000_000_000)

func jobID(n byte) lessor.JobID { return lessor.JobID{UUID: lessor.UUID{15: n}} }

func lease(n byte, worker string, left time.Duration) lessor.Lease {
	return lessor.Lease{
		ID: lessor.LeaseID{UUID: lessor.UUID{15: n}}, JobID: jobID(n), WorkerID: worker, CapacityUnits: 1,
		IssuedAt: now.Add(-time.Minute), ExpiresAt: now.Add(left), LastHeartbeat: now.Add(-time.Second), TTLMS: 60_000,
	}
}

func busy() Snapshot {
	s := Snapshot{
		At:     now,
		Leases: []lessor.Lease{lease(1, "ann", 50*time.Second), lease(2, "bob", 5*time.Second)},
		Queue: []lessor.Job{
			{ID: jobID(3), Type: "mail", Priority: lessor.High, UpdatedAt: now.Add(-time.Hour), MaxAttempts: 5},
		},
		Workers: []lessor.Worker{{WorkerID: "ann", LastSeenAt: now}},
		Alerts: []lessor.Alert{
			{Kind: lessor.AlertHung, Subject: "job 9", Message: "it hangs", RaisedAt: now.Add(-3 * time.Minute)},
		},
	}
	s.Status.ActiveLeases, s.Status.UsableUnits, s.Status.LeasedUnits, s.Status.QueueDepth.High = 2, 10, 2, 1
	return s
}

// seat is a view and its user.
type seat struct {
	t         *testing.T
	m         tea.Model
	snap      Snapshot
	err       error
	cancelled []lessor.JobID
}

func sit(t *testing.T) *seat {
	s := &seat{t: t, snap: busy()}
	s.m = New(t.Context(), Config{
		Every: time.Second,
		Read:  func(context.Context) (Snapshot, error) { return s.snap, s.err },
		Job: func(_ context.Context, id lessor.JobID) (lessor.Job, error) {
			return lessor.Job{
				ID: id, Type: "mail", State: lessor.Running, Payload: []byte(`{"to":"ann"}`), Result: []byte("null"),
			}, nil
		},
		Cancel: func(_ context.Context, id lessor.JobID) (lessor.Job, error) {
			s.cancelled = append(s.cancelled, id)
			return lessor.Job{ID: id, State: lessor.Cancelled}, nil
		},
	})
	s.send(tea.WindowSizeMsg{Width: 120, Height: 20})
	s.refresh()
	return s
}

// send gives the view a message and returns its command.
func (s *seat) send(msg tea.Msg) tea.Cmd {
	var cmd tea.Cmd
	s.m, cmd = s.m.Update(msg)
	return cmd
}

func (s *seat) refresh() { s.send(s.m.Init()()) }

func (s *seat) press(keys ...string) (last tea.Cmd) {
	for _, k := range keys {
		msg := tea.KeyPressMsg{Text: k, Code: []rune(k)[0]}
		switch k {
		case "enter":
			msg = tea.KeyPressMsg{Code: tea.KeyEnter}
		case "esc":
			msg = tea.KeyPressMsg{Code: tea.KeyEscape}
		case "down":
			msg = tea.KeyPressMsg{Code: tea.KeyDown}
		case "backspace":
			msg = tea.KeyPressMsg{Code: tea.KeyBackspace}
		}
		last = s.send(msg)
	}
	return last
}

func (s *seat) sees(want ...string) {
	s.t.Helper()
	screen := s.m.View().Content
	for _, w := range want {
		if !strings.Contains(screen, w) {
			s.t.Errorf("the screen lacks %q:\n%s", w, screen)
		}
	}
}

func (s *seat) misses(text string) {
	s.t.Helper()
	if screen := s.m.View().Content; strings.Contains(screen, text) {
		s.t.Errorf("the screen has %q:\n%s", text, screen)
	}
}

func TestTabsShowWhatThereIs(t *testing.T) {
	s := sit(t)
	s.sees("2/10", "50s", "████████░░", "ann", "bob", jobID(1).String())
	s.press("2")
	s.sees("mail", "high", "60m")
	s.press("3")
	s.sees("ann", "all")
	s.press("4")
	s.sees("hung", "it hangs", "3m")
	s.snap = Snapshot{At: now}
	s.refresh()
	s.sees("no open alerts")
}

func TestFilterNarrowsDown(t *testing.T) {
	s := sit(t)
	s.press("/", "b", "o", "x", "backspace")
	s.sees("bob", "filter: bo")
	s.misses(jobID(1).String())
	s.press("enter")
	s.misses(jobID(1).String())
	s.press("/", "q") // a letter of the filter, not the key that quits
	s.sees("nothing matches")
	s.press("enter", "esc")
	s.sees(jobID(1).String())
}

func TestCancelAsksFirst(t *testing.T) {
	s := sit(t)
	s.press("down", "c")
	s.sees("cancel job " + jobID(2).String() + "?")
	if cmd := s.press("n"); cmd != nil || len(s.cancelled) > 0 {
		t.Fatalf("after no: %v", s.cancelled)
	}
	s.press("c")
	s.snap.Leases = s.snap.Leases[1:] // the row moves while the view waits for the answer
	s.refresh()
	s.send(s.press("y")())
	if len(s.cancelled) != 1 || s.cancelled[0] != jobID(2) {
		t.Fatalf("cancelled %v, want %v", s.cancelled, jobID(2))
	}
	s.sees("cancelled " + jobID(2).String())
	s.press("3", "c") // a worker is not a job
	s.misses("cancel job")
}

func TestInspectShowsTheJob(t *testing.T) {
	s := sit(t)
	s.send(s.press("enter")())
	s.sees(`{"to":"ann"}`, "running", jobID(1).String(), "esc back")
	s.misses("result")
	s.press("esc")
	s.sees("bob")
}

func TestCursorStaysOnItsRow(t *testing.T) {
	s := sit(t)
	s.press("down")
	s.snap.Leases = append([]lessor.Lease{lease(7, "new", time.Minute)}, s.snap.Leases...)
	s.refresh()
	if got := s.m.(Model).current().job; *got != jobID(2) {
		t.Errorf("the cursor is on %v, want %v", got, jobID(2))
	}
	s.snap.Leases = nil
	s.refresh()
	s.press("c", "enter", "down")
	s.misses("cancel job")
}

func TestFailedReadKeepsTheLastSnapshot(t *testing.T) {
	s := sit(t)
	s.err = errors.New("server not reachable")
	s.refresh()
	s.sees("server not reachable", "bob")
	s.err = nil
	s.refresh()
	s.misses("server not reachable")
}

func TestHostileTextIsHarmless(t *testing.T) {
	s := sit(t)
	s.snap.Leases[0].WorkerID = "\x1b]0;owned\x07\x1b[2J\nnext\u202e"
	s.refresh()
	s.misses("\x1b]0")
	s.misses("\x1b[2J")
	s.misses("\u202e")
}

func TestScreenFitsTheWindow(t *testing.T) {
	s := sit(t)
	for range 300 {
		s.snap.Leases = append(s.snap.Leases, lease(9, strings.Repeat("w", 300), time.Second))
	}
	for _, size := range []tea.WindowSizeMsg{{Width: 40, Height: 10}, {Width: 200, Height: 50}, {Width: 1, Height: 1}} {
		s.send(size)
		s.refresh()
		s.press("G")
		lines := strings.Split(s.m.View().Content, "\n")
		if len(lines) > max(size.Height, around+1) {
			t.Errorf("%d lines in a window of %d", len(lines), size.Height)
		}
		for _, l := range lines {
			if w := lipgloss.Width(l); w > size.Width {
				t.Errorf("a line of %d in a window of %d", w, size.Width)
			}
		}
	}
}

func TestFiguresFit80Columns(t *testing.T) {
	s := sit(t)
	s.snap.Status.TotalUnits, s.snap.Status.UsableUnits, s.snap.Status.LeasedUnits = 1000, 950, 900
	s.snap.Status.QueueDepth = lessor.QueueDepth{High: 1000, Normal: 20000, Low: 300000, Background: 4000000}
	s.snap.Status.Draining = true
	for width, priorities := range map[int]bool{80: false, 200: true} {
		s.send(tea.WindowSizeMsg{Width: width, Height: 20})
		s.refresh()
		line, _, _ := strings.Cut(s.m.View().Content, "\n")
		if !strings.Contains(line, "draining") || strings.Contains(line, "background") != priorities {
			t.Errorf("at %d columns: %q", width, line)
		}
	}
}

func TestQuit(t *testing.T) {
	if cmd := sit(t).press("q"); cmd == nil {
		t.Fatal("q does nothing")
	} else if _, ok := cmd().(tea.QuitMsg); !ok {
		t.Error("q does not quit")
	}
}
