package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"time"

	"lessor"
	"lessor/internal/sentinel"
)

const (
	// lookEvery is how often the folder is looked at: soon enough for people who wait, and a handful of system calls. A
	// short lease makes it more often, down to leastLook.
	lookEvery = 250 * time.Millisecond
	leastLook = 20 * time.Millisecond
)

// watch checks the folder until ctx is done: for messages of the command and for a request to stop.
func (s *shim) watch(ctx context.Context) {
	pace := time.Duration(s.order.Grant.Lease.HeartbeatAfterMS) * time.Millisecond
	tick := time.NewTicker(min(max(pace/4, leastLook), lookEvery))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.look()
		if s.superseded() {
			s.stop(errSuperseded)
			return
		}
	}
}

// superseded reports whether the folder no longer belongs to this attempt: a newer attempt asked for it, or it was
// removed.
func (s *shim) superseded() bool {
	asked, err := s.folder.AskedToStop(s.order.Grant.Lease.Fence)
	s.warnOnce("a request to end", err)
	return asked || s.folder.Gone()
}

// look takes in what the command left in its folder since the last look.
func (s *shim) look() {
	for i, name := range wordNames() {
		data, err := s.folder.ReadFile(name, maxSignal)
		if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Equal(data, s.heard[i]) {
			continue
		}
		var g word
		if err == nil {
			s.heard[i] = data
			err = errors.Join(json.Unmarshal(data, &g), g.check())
		}
		if err != nil {
			s.warnOnce("a word of the command", err)
			continue
		}
		s.hear(g)
	}
	s.lookAtCheckpoint()
}

func (s *shim) hear(g word) {
	s.moved()
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(sentinel.Statuses(), g.Status) && g.Status != s.news.status {
		s.news.status = g.Status
		notify(s.restless)
	}
	if g.Progress != nil {
		s.news.progress, s.news.message = g.Progress, g.Message
		notify(s.wake)
	}
}

// lookAtCheckpoint takes in the checkpoint if it is new and whole. One that is being written is not JSON yet: it is
// looked at again.
func (s *shim) lookAtCheckpoint() {
	data, err := s.folder.ReadFile(checkpointName, lessor.MaxCheckpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		s.warnOnce("a checkpoint", err)
		return
	}
	data = bytes.TrimSpace(data)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !bytes.Equal(data, s.news.lastCheckpoint) && json.Valid(data) {
		s.news.checkpoint, s.news.lastCheckpoint = data, data
		notify(s.wake)
	}
}

// warnOnce warns of an error that would come back at every look, until another one takes its place.
func (s *shim) warnOnce(what string, err error) {
	if err == nil || s.warned == what+err.Error() {
		return
	}
	s.warned = what + err.Error()
	s.log.Warn("the folder holds something that is not obeyed", "what", what, "error", err)
}
