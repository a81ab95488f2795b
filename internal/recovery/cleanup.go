package recovery

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/sentinel"
)

// maxCleanups bounds what is remembered: the oldest that is over goes.
const maxCleanups = 1000

// cleaner removes folders: those of dead commands after a last look, and those of jobs that ended long ago.
type cleaner struct {
	cfg       Config
	sched     *scheduler.Scheduler
	workspace *sentinel.Workspace
	log       *slog.Logger
	wake      chan struct{}

	mu  sync.Mutex
	all []*cleanup // by the time they were scheduled
}

// cleanup is the removal of one folder.
type cleanup struct {
	job     lessor.JobID
	fence   int64   // of the attempt that is dead
	content content // its last pulse
	due     time.Time
	shown   lessor.Cleanup
}

func newCleaner(cfg Config) *cleaner {
	return &cleaner{cfg: cfg, sched: cfg.Scheduler, workspace: cfg.Workspace, log: cfg.Log, wake: make(chan struct{}, 1)}
}

// cleanDead schedules the removal of the folders of commands that are dead and hold no lease. A folder whose job the store does not
// know is somebody else's unless the settings say otherwise; one whose job has a newer attempt may be that attempt's.
func (m *Monitor) cleanDead(touched []*subject, now moment) {
	for _, s := range touched {
		if s.record == nil || s.watch != nil || s.facts.Held != nil || !s.facts.known && !m.cfg.CleanUnknown || s.cleaned == s.sight.content {
			continue
		}
		if v, _ := m.verdict(s, now); v == rules.Dead {
			s.cleaned = s.sight.content
			m.cleaner.schedule(s, now)
		}
	}
}

func (c *cleaner) schedule(s *subject, now moment) {
	one := &cleanup{job: s.job, fence: s.lastFence(), content: s.sight.content, due: now.Add(c.cfg.CleanupDelay)}
	one.shown = lessor.Cleanup{
		JobID: s.job, WorkspacePath: pathOf(c.workspace, s.folder), Status: lessor.CleanupScheduled,
		ScheduledAt: now.wall, DueAt: now.wall.Add(c.cfg.CleanupDelay),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) >= maxCleanups {
		if i := slices.IndexFunc(c.all, func(k *cleanup) bool { return k.shown.EndedAt != 0 }); i >= 0 {
			c.all = slices.Delete(c.all, i, i+1)
		}
	}
	c.all = append(c.all, one)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// pathOf is where a folder of the workspace is.
func pathOf(w *sentinel.Workspace, folder string) string {
	return filepath.Join(w.Path(), "jobs", folder)
}

// run removes folders when their time has come, until ctx is done.
func (c *cleaner) run(ctx context.Context) {
	if err := c.workspace.Tidy(); err != nil {
		c.log.Warn("what earlier removals left is still there", "error", err)
	}
	timer := time.NewTimer(c.keepEvery())
	defer timer.Stop()
	old := time.Now().Add(c.keepEvery())
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-timer.C:
		}
		for _, one := range c.due(time.Now()) {
			c.clean(ctx, one)
		}
		if !time.Now().Before(old) {
			if err := c.removeOld(ctx); err != nil && ctx.Err() == nil {
				c.log.Warn("folders of jobs that ended long ago are still there", "error", err)
			}
			old = time.Now().Add(c.keepEvery())
		}
		timer.Reset(time.Until(earlier(old, c.next(old))))
	}
}

func (c *cleaner) due(now time.Time) (due []*cleanup) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.all {
		if one.shown.EndedAt == 0 && !one.due.After(now) {
			due = append(due, one)
		}
	}
	return due
}

// next is when the next removal is due, or later if none is.
func (c *cleaner) next(later time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.all {
		if one.shown.EndedAt == 0 {
			later = earlier(later, one.due)
		}
	}
	return later
}

// tryAgain is how long a removal that failed is left alone: what is in its way is for people to see.
const tryAgain = time.Minute

// clean removes one folder, unless the last look says otherwise. What fails is told and tried again.
func (c *cleaner) clean(ctx context.Context, one *cleanup) {
	status, reason := lessor.CleanupDone, ""
	why, err := c.remove(ctx, one)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		status, reason = lessor.CleanupFailed, err.Error()
		c.log.Warn("the folder of a dead job is still there", "job_id", one.job.String(), "error", err)
	case why != "":
		status, reason = lessor.CleanupDropped, why
	default:
		c.log.Info("removed the folder of a dead job", "job_id", one.job.String())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	one.shown.Status, one.shown.Reason = status, given(reason)
	now := momentOf(c.cfg)
	if err != nil {
		one.due, one.shown.DueAt = now.Add(tryAgain), now.wall.Add(tryAgain)
		return
	}
	one.shown.EndedAt = now.wall
}

// remove looks once more and removes a folder under its lock. kept says why it stays.
func (c *cleaner) remove(ctx context.Context, one *cleanup) (kept string, err error) {
	known, err := c.sched.Watched(ctx, []lessor.JobID{one.job})
	if err != nil {
		return "", err
	}
	if w, ok := known[one.job]; ok && (w.Fence > one.fence || w.Held != nil) {
		return "a newer attempt exists", nil
	}
	f, err := c.workspace.Folder(one.job)
	if err != nil {
		return "the folder is gone, or another's", nil // what is no folder of ours is not removed
	}
	defer func() { _ = f.Close() }() // it is removed
	lock, err := f.Lock()
	switch {
	case err != nil:
		return "", err
	case lock == nil:
		return "an attempt holds the folder", nil
	}
	defer func() { _ = lock.Close() }() // it is removed
	record, err := f.Sentinel()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "the sentinel is gone", nil
	case err != nil:
		return "the sentinel is not obeyed", nil // then it is not dead either
	case contentOf(&record) != one.content:
		return "it pulses again", nil
	}
	return "", c.workspace.Remove(one.job)
}

// list returns the cleanups, newest first.
func (c *cleaner) list() []lessor.Cleanup {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]lessor.Cleanup, 0, len(c.all))
	for _, one := range slices.Backward(c.all) {
		all = append(all, one.shown)
	}
	return all
}
