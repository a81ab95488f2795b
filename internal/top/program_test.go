package top

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
)

// TestProgramDrawsAndEnds runs the view as the command does, with pipes for keyboard and screen.
func TestProgramDrawsAndEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	reads := 0
	in, keyboard := io.Pipe()
	var screen bytes.Buffer
	view := New(ctx, Config{Every: time.Millisecond, Read: func(context.Context) (Snapshot, error) {
		if reads++; reads == 50 {
			if _, err := keyboard.Write([]byte("q")); err != nil {
				t.Error(err)
			}
		}
		return busy(), nil
	}})
	_, err := tea.NewProgram(view, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(&screen),
		tea.WithWindowSize(100, 20), tea.WithoutSignalHandler()).Run()
	if err != nil {
		t.Fatal(err)
	}
	if reads < 50 || !strings.Contains(screen.String(), "bob") {
		t.Errorf("after %d reads the screen was %q", reads, screen.String())
	}
}
