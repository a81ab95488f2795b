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
	// checkInterval is how often the folder is checked, which takes a few system calls. A waiting person does not
	// notice the delay. A short lease is checked more often, down to minCheckInterval.
	checkInterval    = 250 * time.Millisecond
	minCheckInterval = 20 * time.Millisecond
)

// watch checks the folder until ctx is done: for messages of the command and of the Runner, and for a request to stop.
func (s *shim) watch(ctx context.Context) {
	pace := time.Duration(s.order.Grant.Lease.HeartbeatAfterMS) * time.Millisecond
	tick := time.NewTicker(min(max(pace/4, minCheckInterval), checkInterval))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.readUpdates()
		s.readInstruction()
		s.readQuestion()
		switch {
		case s.folder.Gone():
			s.stop(errGone)
			return
		case s.superseded():
			s.stop(errSuperseded)
			return
		}
	}
}

// superseded reports whether a newer attempt asked for the folder.
func (s *shim) superseded() bool {
	asked, err := s.folder.AskedToStop(s.order.Grant.Lease.Fence)
	s.warnOnce("a request to end", err)
	return asked
}

// readUpdates reads what the command left in its folder since the last time.
func (s *shim) readUpdates() {
	for i, name := range updateNames() {
		data, err := s.folder.ReadFile(name, maxUpdate)
		if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Equal(data, s.updates[i]) {
			continue
		}
		var g update
		if err == nil {
			s.updates[i] = data
			err = errors.Join(json.Unmarshal(data, &g), g.check())
		}
		if err != nil {
			s.warnOnce("an update by the command", err)
			continue
		}
		s.apply(g)
	}
	s.readCheckpoint()
}

func (s *shim) apply(g update) {
	s.moved()
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(sentinel.Statuses(), g.Status) && g.Status != s.reported.status {
		s.reported.status = g.Status
		notify(s.pulseNow)
	}
	if g.Progress != nil {
		s.reported.progress, s.reported.message = g.Progress, g.Message
		notify(s.wake)
	}
}

// readCheckpoint reads the checkpoint if it is new and complete. One that is still being written is no JSON and is read
// again next time.
func (s *shim) readCheckpoint() {
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
	if !bytes.Equal(data, s.reported.lastCheckpoint) && json.Valid(data) {
		s.reported.checkpoint, s.reported.lastCheckpoint = data, data
		notify(s.wake)
	}
}

// warnOnce logs an error that would return at every check once, until another error takes its place.
func (s *shim) warnOnce(what string, err error) {
	if err == nil {
		return
	}
	text := what + err.Error()
	s.mu.Lock()
	again := s.warned == text
	s.warned = text
	s.mu.Unlock()
	if again {
		return
	}
	s.log.Warn("the folder holds something that is ignored", "what", what, "error", err)
}
