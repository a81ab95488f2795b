package recovery

import (
	"context"
	"errors"
	"slices"
	"time"

	"lessor"
)

// mostKeepEvery is how late, at most, a folder goes whose time has come.
const mostKeepEvery = time.Hour

// keepEvery is how often folders of jobs that have ended are looked for.
func (c *cleaner) keepEvery() time.Duration {
	return min(max(c.cfg.Keep/10, time.Millisecond), mostKeepEvery)
}

// removeOld removes the folders of jobs that ended longer ago than folders are kept.
func (c *cleaner) removeOld(ctx context.Context) error {
	jobs, err := c.workspace.Jobs()
	if err != nil {
		return err
	}
	var errs []error
	for page := range slices.Chunk(jobs, factPage) {
		known, err := c.sched.Watched(ctx, page)
		if err != nil {
			return err
		}
		for id, w := range known {
			if w.Final && w.Now.Sub(w.EndedAt) >= c.cfg.Keep {
				errs = append(errs, c.removeFree(id))
			}
		}
	}
	return errors.Join(errs...)
}

// removeFree removes a folder if nobody holds it.
func (c *cleaner) removeFree(id lessor.JobID) error {
	f, err := c.workspace.Folder(id)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it is removed
	lock, err := f.Lock()
	if err != nil || lock == nil {
		return err
	}
	defer func() { _ = lock.Close() }() // it is removed
	return c.workspace.Remove(id)
}
