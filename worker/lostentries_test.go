package worker

import (
	"context"
	"slices"
	"testing"

	"lessor"
)

// TestNoEntryFollowsAHole appends an entry while another append brings lost entries back. It must wait for them: a
// worker that died between them would leave a journal with a hole.
func TestNoEntryFollowsAHole(t *testing.T) {
	var server []string // the keys of its journal
	var j *Journal
	late := func() {}
	j = &Journal{
		loaded: true, entries: map[string]lessor.JournalEntry{},
		load: func(context.Context) (map[string]lessor.JournalEntry, error) {
			stored := map[string]lessor.JournalEntry{}
			for _, key := range server {
				stored[key] = lessor.JournalEntry{Key: key}
			}
			return stored, nil
		},
		send: func(_ context.Context, e lessor.JournalAsk, after int) (int, error) {
			if *e.Key == "first lost" {
				late()
			}
			if len(server) < after {
				return 0, lessor.ErrConflict
			}
			if !slices.Contains(server, *e.Key) {
				server = append(server, *e.Key)
			}
			return slices.Index(server, *e.Key) + 1, nil
		},
	}
	add := func(key string) {
		if err := j.Append(t.Context(), key, "", nil); err != nil {
			t.Errorf("append %q: %v", key, err)
		}
	}
	for _, key := range []string{"kept", "first lost", "second lost"} {
		add(key)
	}
	server = server[:1]
	late = func() {
		late = func() {}
		add("late")
	}
	add("next")
	want := []string{"kept", "first lost", "second lost", "late", "next"}
	if !slices.Equal(server, want) {
		t.Errorf("the journal has %q, want %q", server, want)
	}
}
