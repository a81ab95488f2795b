package httpapi

import (
	"net/http"

	"lessor"
	"lessor/internal/recovery"
	"lessor/internal/token"
)

// recoveryRoutes are the routes about commands in this node's workspace.
func recoveryRoutes() []route {
	const jobs, job = administration + "/recovery/jobs", administration + "/jobs/{jobId}"
	report := func(path, summary string, handle func(*call) error, body any) route {
		return route{
			method: http.MethodGet, path: path, scope: token.Administer, summary: summary,
			handle: plain(handle), answers: answers(http.StatusOK, body),
		}
	}
	return []route{
		report(jobs+"/heartbeats", "Show the verdict on every command in this node's workspace.",
			reports(recovery.Snapshot.Heartbeats), lessor.JobHeartbeats{}),
		report(jobs+"/stale", "Show the stale ones.", reports(recovery.Snapshot.Stale), lessor.StaleJobs{}),
		report(jobs+"/status", "Show what was found at the start and since, and what became of it.",
			reports(recovery.Snapshot.Status), lessor.RecoveryStatus{}),
		report(jobs+"/sentinels", "Show every sentinel file, also those that are not obeyed.",
			reports(recovery.Snapshot.Sentinels), lessor.Sentinels{}),
		report(jobs+"/metrics", "Count what was recovered since the start.", reports(recovery.Snapshot.Metrics),
			lessor.RecoveryMetrics{}),
		report(jobs+"/failed", "List jobs whose command was found dead, newest first.", (*call).failedJobs,
			lessor.FailedJobs{}),
		report(administration+"/recovery/cleanups",
			"List folders of dead commands that are or were removed, newest first.", (*call).cleanups,
			lessor.Cleanups{}),
		{
			method: http.MethodPost, path: jobs + "/resume", scope: token.Administer,
			summary: "Make a new job from one that failed for good or whose command is dead, with its payload " +
				"and last checkpoint.",
			handle:   takes(bodySmall, (*call).resumeJob),
			answers:  answers(http.StatusAccepted, lessor.Resumed{}),
			refusals: codes(lessor.CodeJobNotFound, lessor.CodeConflict),
		},
		{
			method: http.MethodPost, path: administration + "/recovery/scan", scope: token.Administer,
			summary: "Check the whole workspace now.",
			handle:  takes(bodySmall, (*call).scan), answers: answers(http.StatusOK, lessor.Scanned{}),
		},
		{
			method: http.MethodGet, path: job + "/health", scope: token.Administer,
			summary: "Show what the workspace says about a job.",
			handle:  plain(byID(watchedID, (*call).jobHealth)), answers: answers(http.StatusOK, lessor.JobHealth{}),
			refusals: codes(lessor.CodeJobNotFound),
		},
		{
			method: http.MethodPost, path: job + "/mark-dead", scope: token.Administer,
			summary:  "Give up a job: its attempt fails, its command is asked to stop, and its folder is removed.",
			handle:   takes(bodySmall, byIDWithBody(watchedID, (*call).markDead)),
			answers:  answers(http.StatusOK, lessor.JobHealth{}),
			refusals: codes(lessor.CodeJobNotFound, lessor.CodeConflict),
		},
	}
}

// reports answers with one report of a snapshot.
func reports[T any](report func(recovery.Snapshot) T) func(*call) error {
	return func(c *call) error {
		snap, err := c.api.recovery.Snapshot(c.r.Context())
		if err != nil {
			return err
		}
		return c.answer(http.StatusOK, report(snap))
	}
}

func (c *call) failedJobs() error {
	return c.reply(c.api.recovery.Failed(c.r.Context()))
}

func (c *call) cleanups() error { return c.answer(http.StatusOK, c.api.recovery.Cleanups()) }

func (c *call) jobHealth(id lessor.JobID) error {
	return c.reply(c.api.recovery.Health(c.r.Context(), id))
}

func (c *call) markDead(id lessor.JobID, _ *empty) error {
	return c.reply(c.api.recovery.MarkDead(c.r.Context(), c.caller, id))
}

func (c *call) scan(*empty) error {
	if err := c.api.recovery.Scan(c.r.Context()); err != nil {
		return err
	}
	metrics := c.api.recovery.Known().Metrics()
	return c.answer(http.StatusOK, lessor.Scanned{LastScan: metrics.LastScan, Node: metrics.Node})
}

func (c *call) resumeJob(ask *lessor.ResumeAsk) error {
	u, err := lessor.ParseUUID(*ask.JobID)
	if err != nil {
		return lessor.ErrJobNotFound
	}
	resumed, err := c.api.recovery.Resume(c.r.Context(), c.caller, lessor.JobID{UUID: u},
		ask.FromCheckpoint == nil || *ask.FromCheckpoint)
	if err != nil {
		return err
	}
	return c.answer(http.StatusAccepted, resumed)
}
