package client

import (
	"context"
	"net/http"

	"lessor"
)

// The methods in this file are about the commands in the workspace of the node that answers. They need an admin token.

// JobHeartbeats returns the verdict on every command.
func (c *Client) JobHeartbeats(ctx context.Context) (lessor.JobHeartbeats, error) {
	return get[lessor.JobHeartbeats](ctx, c, admin+"/recovery/jobs/heartbeats", nil, maxList)
}

// StaleJobs returns the stale commands.
func (c *Client) StaleJobs(ctx context.Context) (lessor.StaleJobs, error) {
	return get[lessor.StaleJobs](ctx, c, admin+"/recovery/jobs/stale", nil, maxList)
}

// RecoveryStatus returns the commands that the node found at its start and since, and their outcome.
func (c *Client) RecoveryStatus(ctx context.Context) (lessor.RecoveryStatus, error) {
	return get[lessor.RecoveryStatus](ctx, c, admin+"/recovery/jobs/status", nil, maxList)
}

// Sentinels returns every sentinel file.
func (c *Client) Sentinels(ctx context.Context) (lessor.Sentinels, error) {
	return get[lessor.Sentinels](ctx, c, admin+"/recovery/jobs/sentinels", nil, maxList)
}

// RecoveryMetrics returns the counts of recovered commands since the start of the node.
func (c *Client) RecoveryMetrics(ctx context.Context) (lessor.RecoveryMetrics, error) {
	return get[lessor.RecoveryMetrics](ctx, c, admin+"/recovery/jobs/metrics", nil, maxObject)
}

// FailedJobs returns the jobs whose command was found dead, newest first.
func (c *Client) FailedJobs(ctx context.Context) (lessor.FailedJobs, error) {
	return get[lessor.FailedJobs](ctx, c, admin+"/recovery/jobs/failed", nil, maxList)
}

// Cleanups returns the folders of dead commands that were or will be removed, newest first.
func (c *Client) Cleanups(ctx context.Context) (lessor.Cleanups, error) {
	return get[lessor.Cleanups](ctx, c, admin+"/recovery/cleanups", nil, maxList)
}

// JobHealth returns the state of one job in the workspace.
func (c *Client) JobHealth(ctx context.Context, id lessor.JobID) (lessor.JobHealth, error) {
	return get[lessor.JobHealth](ctx, c, admin+"/jobs/"+id.String()+"/health", nil, maxObject)
}

// ScanWorkspace makes the node scan its whole workspace now.
func (c *Client) ScanWorkspace(ctx context.Context) (r lessor.Scanned, err error) {
	_, err = c.do(ctx, call{method: http.MethodPost, path: admin + "/recovery/scan", body: struct{}{}, safe: true}, &r)
	return r, err
}

// ResumeJob submits a new job with the payload of a job that failed for good or whose command was found dead, and with
// its last checkpoint if fromCheckpoint is set.
func (c *Client) ResumeJob(ctx context.Context, id lessor.JobID, fromCheckpoint bool) (lessor.Resumed, error) {
	ask := lessor.ResumeAsk{JobID: new(id.String()), FromCheckpoint: &fromCheckpoint}
	return send[lessor.Resumed](ctx, c, http.MethodPost, admin+"/recovery/jobs/resume", ask)
}

// MarkDead gives up a job: its attempt fails, its command is stopped, and its folder is removed.
func (c *Client) MarkDead(ctx context.Context, id lessor.JobID) (lessor.JobHealth, error) {
	return send[lessor.JobHealth](ctx, c, http.MethodPost, admin+"/jobs/"+id.String()+"/mark-dead", nil)
}
