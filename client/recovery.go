package client

import (
	"context"
	"net/http"

	"lessor"
)

// What follows is about the commands in the workspace of the node that answers. All of it needs an admin token.

// JobHeartbeats returns the verdict on every command.
func (c *Client) JobHeartbeats(ctx context.Context) (r lessor.JobHeartbeats, err error) {
	_, err = c.read(ctx, admin+"/recovery/jobs/heartbeats", nil, maxList, &r)
	return r, err
}

// StaleJobs returns the commands that are stale.
func (c *Client) StaleJobs(ctx context.Context) (r lessor.StaleJobs, err error) {
	_, err = c.read(ctx, admin+"/recovery/jobs/stale", nil, maxList, &r)
	return r, err
}

// RecoveryStatus returns what the node found at its start and since, and what became of it.
func (c *Client) RecoveryStatus(ctx context.Context) (r lessor.RecoveryStatus, err error) {
	_, err = c.read(ctx, admin+"/recovery/jobs/status", nil, maxList, &r)
	return r, err
}

// Sentinels returns every sentinel file.
func (c *Client) Sentinels(ctx context.Context) (r lessor.Sentinels, err error) {
	_, err = c.read(ctx, admin+"/recovery/jobs/sentinels", nil, maxList, &r)
	return r, err
}

// RecoveryMetrics counts what the node recovered since its start.
func (c *Client) RecoveryMetrics(ctx context.Context) (r lessor.RecoveryMetrics, err error) {
	_, err = c.read(ctx, admin+"/recovery/jobs/metrics", nil, maxObject, &r)
	return r, err
}

// FailedJobs returns the jobs whose command was found dead, newest first.
func (c *Client) FailedJobs(ctx context.Context) (r lessor.FailedJobs, err error) {
	_, err = c.read(ctx, admin+"/recovery/jobs/failed", nil, maxList, &r)
	return r, err
}

// Cleanups returns the folders of dead commands that are or were removed, newest first.
func (c *Client) Cleanups(ctx context.Context) (r lessor.Cleanups, err error) {
	_, err = c.read(ctx, admin+"/recovery/cleanups", nil, maxList, &r)
	return r, err
}

// JobHealth returns what the workspace says about one job.
func (c *Client) JobHealth(ctx context.Context, id lessor.JobID) (r lessor.JobHealth, err error) {
	_, err = c.read(ctx, admin+"/jobs/"+id.String()+"/health", nil, maxObject, &r)
	return r, err
}

// ScanWorkspace makes the node look at its whole workspace now.
func (c *Client) ScanWorkspace(ctx context.Context) (r lessor.Scanned, err error) {
	_, err = c.do(ctx, call{method: http.MethodPost, path: admin + "/recovery/scan", body: struct{}{}, safe: true}, &r)
	return r, err
}

// ResumeJob makes a new job from one that failed for good, or whose command was found dead, with its payload and, if
// asked for, its last checkpoint.
func (c *Client) ResumeJob(ctx context.Context, id lessor.JobID, fromCheckpoint bool) (r lessor.Resumed, err error) {
	ask := lessor.ResumeAsk{JobID: new(id.String()), FromCheckpoint: &fromCheckpoint}
	_, err = c.do(ctx, call{method: http.MethodPost, path: admin + "/recovery/jobs/resume", body: ask}, &r)
	return r, err
}

// MarkDead gives up a job: its attempt fails, its command is told to stop, and its folder is cleaned away.
func (c *Client) MarkDead(ctx context.Context, id lessor.JobID) (r lessor.JobHealth, err error) {
	_, err = c.do(ctx, call{
		method: http.MethodPost, path: admin + "/jobs/" + id.String() + "/mark-dead",
		body: struct{}{},
	}, &r)
	return r, err
}
