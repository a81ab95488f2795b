package sentinel

import (
	"encoding/json"
	"slices"

	"lessor"
)

// Exit says how an attempt ended. It holds all that a server needs to complete a job whose end nobody reported.
type Exit struct {
	JobID    lessor.JobID   `json:"jobId"`
	LeaseID  lessor.LeaseID `json:"leaseId"`
	WorkerID string         `json:"workerId"`
	Fence    int64          `json:"fence"`
	Attempt  int            `json:"attempt"`
	// Status is completed, failed, cancelled or waiting, as in a worker's report.
	Status lessor.State `json:"status"`
	// ExitCode is -1 for a command that a signal ended, or that never began.
	ExitCode  int            `json:"exitCode"`
	Signal    string         `json:"signal"`
	StartedAt lessor.Instant `json:"startedAt"`
	EndedAt   lessor.Instant `json:"endedAt"`
	// Result and Error are within the server's limits, as are Progress, Message and Checkpoint. These are what the
	// command reported last and the server may not know; nil is as it was.
	Result     json.RawMessage `json:"result"`
	Error      string          `json:"error"`
	Progress   *float64        `json:"progress,omitempty"`
	Message    *string         `json:"message,omitempty"`
	Checkpoint json.RawMessage `json:"checkpoint"`
	// Permanent says that a failed job must not be retried.
	Permanent bool `json:"permanent"`
	// Question and ExpiresInS belong to the status waiting.
	Question   *lessor.Asking `json:"question,omitempty"`
	ExpiresInS *int64         `json:"expiresInS,omitempty"`
}

// Completion is the exit record as a worker would report it.
func (e Exit) Completion() lessor.Completion {
	c := lessor.Completion{
		WorkerID: &e.WorkerID, Status: new(string(e.Status)), Result: e.Result,
		Progress: e.Progress, Message: e.Message, Checkpoint: e.Checkpoint,
		Question: e.Question, ExpiresInS: e.ExpiresInS,
	}
	if e.Error != "" {
		c.Error = &e.Error
	}
	if e.Permanent {
		c.Retryable = new(false)
	}
	return c
}

var ends = []lessor.State{lessor.Completed, lessor.Failed, lessor.Cancelled, lessor.Waiting}

// check returns an error if e is no valid exit record of job id.
func (e *Exit) check(id lessor.JobID) error {
	switch {
	case e.JobID.IsZero():
		return invalid(Malformed, "jobId is missing")
	case e.JobID != id:
		return invalid(OtherJob, "it belongs to job %s", e.JobID)
	case !slices.Contains(ends, e.Status):
		return invalid(Malformed, "status %.20q is no end", e.Status)
	case e.LeaseID.IsZero() || e.WorkerID == "" || e.Fence <= 0:
		return invalid(Malformed, "leaseId, workerId or fence is missing")
	}
	return nil
}
