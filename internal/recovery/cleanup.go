package recovery

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/sentinel"
)

// maxCleanups bounds the list of cleanups: the oldest that has ended is dropped.
const maxCleanups = 1000

// cleaner removes the folders of dead commands, after a last check, and of jobs that ended long ago.
type cleaner struct {
	cfg  Config
	wake chan struct{}

	mu  sync.Mutex
	all []*cleanup // by the time they were scheduled
}

// cleanup is the removal of one folder.
type cleanup struct {
	fence int64 // of the attempt that is dead
	pulse pulse // its last pulse
	due   time.Time
	shown lessor.Cleanup
}

// cleanDead schedules the removal of the folders of commands that are dead and hold no lease. It leaves a folder alone
// if its job has a lease, which may use the folder, or is unknown to the store, unless the settings say otherwise.
func (m *Monitor) cleanDead(checked []*subject, now moment) {
	for _, s := range checked {
		if s.record == nil || s.watch != nil || s.stored.Held != nil || s.cleaned == s.seen.pulse ||
			!s.stored.known && !m.cfg.CleanUnknown {
			continue
		}
		if m.verdict(s, now) == rules.Dead {
			s.cleaned = s.seen.pulse
			m.cleaner.schedule(s, now)
		}
	}
}

// schedule plans the removal of a folder, in the place of an earlier plan for the same attempt.
func (c *cleaner) schedule(s *subject, now moment) {
	one := &cleanup{fence: s.lastFence(), pulse: s.seen.pulse, due: now.Add(c.cfg.CleanupDelay), shown: lessor.Cleanup{
		JobID: s.job, WorkspacePath: pathOf(c.cfg.Workspace, s.folder), Status: lessor.CleanupScheduled,
		ScheduledAt: now.wall, DueAt: now.wall.Add(c.cfg.CleanupDelay),
	}}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = slices.DeleteFunc(c.all, func(k *cleanup) bool {
		return k.shown.EndedAt == 0 && k.shown.WorkspacePath == one.shown.WorkspacePath && k.fence == one.fence
	})
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

// pathOf returns the path of a folder of the workspace.
func pathOf(w *sentinel.Workspace, folder string) string {
	return filepath.Join(w.Path(), "jobs", folder)
}

// run removes folders when they are due, until ctx is done.
func (c *cleaner) run(ctx context.Context) {
	if err := c.cfg.Workspace.Tidy(); err != nil {
		c.cfg.Log.Warn("the remains of earlier removals could not be removed", "error", err)
	}
	timer := time.NewTimer(c.keepInterval())
	defer timer.Stop()
	old := time.Now().Add(c.keepInterval())
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
				c.cfg.Log.Warn("folders of jobs that ended long ago could not be removed", "error", err)
			}
			old = time.Now().Add(c.keepInterval())
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

// next returns when the next removal is due, later if none is.
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

// retryRemovalAfter is the pause after a failed removal: a person has to remove the cause.
const retryRemovalAfter = time.Minute

// clean removes one folder, unless the last check says otherwise. A removal that fails is logged and tried again.
func (c *cleaner) clean(ctx context.Context, one *cleanup) {
	status, reason := lessor.CleanupDone, ""
	why, err := c.remove(ctx, one)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		status, reason = lessor.CleanupFailed, err.Error()
		c.cfg.Log.Warn("the folder of a dead job could not be removed",
			"job_id", one.shown.JobID.String(), "error", err)
	case why != "":
		status, reason = lessor.CleanupDropped, why
	default:
		c.cfg.Log.Info("removed the folder of a dead job", "job_id", one.shown.JobID.String())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	one.shown.Status, one.shown.Reason = status, given(reason)
	now := momentOf(c.cfg)
	if err != nil {
		one.due, one.shown.DueAt = now.Add(retryRemovalAfter), now.wall.Add(retryRemovalAfter)
		return
	}
	one.shown.EndedAt = now.wall
}

// remove checks once more and removes a folder under its lock. kept says why the folder stays.
func (c *cleaner) remove(ctx context.Context, one *cleanup) (kept string, err error) {
	id := one.shown.JobID
	known, err := c.cfg.Scheduler.Watched(ctx, []lessor.JobID{id})
	if err != nil {
		return "", err
	}
	if w, ok := known[id]; ok && (w.Fence > one.fence || w.Held != nil) {
		return "a newer attempt exists", nil
	}
	return c.removeFree(id, func(f *sentinel.Folder) string {
		record, err := f.Sentinel()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "the sentinel is gone"
		case err != nil:
			return "the sentinel is not obeyed" // an invalid sentinel does not say that the command is dead
		case pulseOf(&record) != one.pulse:
			return "it pulses again"
		}
		return ""
	})
}

// removeFree removes a folder under its lock. kept says why the folder stays: an attempt holds it, or check objects.
func (c *cleaner) removeFree(id lessor.JobID, check func(*sentinel.Folder) string) (kept string, err error) {
	f, err := c.cfg.Workspace.Folder(id)
	if err != nil {
		return "the folder is gone, or another's", nil
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
	if kept = check(f); kept != "" {
		return kept, nil
	}
	return "", c.cfg.Workspace.Remove(id)
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

// maxKeepInterval bounds how late the folder of an old job is removed.
const maxKeepInterval = time.Hour

// keepInterval is the time between two searches for folders of jobs that have ended.
func (c *cleaner) keepInterval() time.Duration {
	return min(max(c.cfg.Keep/10, time.Millisecond), maxKeepInterval)
}

// removeOld removes the folders of jobs that ended longer than cfg.Keep ago.
func (c *cleaner) removeOld(ctx context.Context) error {
	jobs, err := c.cfg.Workspace.Jobs()
	if err != nil {
		return err
	}
	var errs []error
	for page := range slices.Chunk(jobs, pageSize) {
		known, err := c.cfg.Scheduler.Watched(ctx, page)
		if err != nil {
			return err
		}
		for id, w := range known {
			if w.Final && w.Now.Sub(w.EndedAt) >= c.cfg.Keep {
				_, err := c.removeFree(id, func(*sentinel.Folder) string { return "" })
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
