package lessor

import "encoding/json"

// Lease is the right of one worker to run one job until ExpiresAt.
type Lease struct {
	ID               LeaseID `json:"lease_id"`
	JobID            JobID   `json:"job_id"`
	Type             string  `json:"type,omitempty"` // the job's, in a list
	WorkerID         string  `json:"worker_id"`
	CapacityUnits    int     `json:"capacity_units"`
	IssuedAt         Instant `json:"issued_at"`
	ExpiresAt        Instant `json:"expires_at"`
	LastHeartbeat    Instant `json:"last_heartbeat"`
	Fence            int64   `json:"fence"`
	TTLMS            int64   `json:"ttl_ms"`
	HeartbeatAfterMS int64   `json:"heartbeat_after_ms"`
}

// LeaseRequest is a worker's request for work.
type LeaseRequest struct {
	WorkerID    *string  `json:"worker_id"`
	MaxUnits    *int64   `json:"max_units,omitempty"`
	Types       []string `json:"types,omitempty"`
	MaxLeases   *int64   `json:"max_leases,omitempty"`
	WaitMS      *int64   `json:"wait_ms,omitempty"`
	RequestID   *string  `json:"request_id,omitempty"`
	TTLMS       *int64   `json:"ttl_ms,omitempty"`
	WorkspaceID *string  `json:"workspace_id,omitempty"`
	View        *string  `json:"view,omitempty"` // ViewFull, which is the default, or ViewWork
}

// The forms of grants.
const (
	ViewFull = "full" // every field of lease and job
	ViewWork = "work" // what a worker needs: see docs/http-workers.md
	ViewIDs  = "ids"  // of a batch of submissions: only the ids of the jobs
)

// Turn is all that a worker has to say, and its next request, in one call and one commit. Each part may be left out.
type Turn struct {
	WorkerID  *string           `json:"worker_id"`
	Complete  []LeaseCompletion `json:"complete,omitempty"`
	Heartbeat []string          `json:"heartbeat,omitempty"` // lease ids
	Request   *TurnRequest      `json:"request,omitempty"`
}

// TurnRequest is the LeaseRequest of a turn, which has the worker.
type TurnRequest struct {
	MaxUnits    *int64   `json:"max_units,omitempty"`
	Types       []string `json:"types,omitempty"`
	MaxLeases   *int64   `json:"max_leases,omitempty"`
	WaitMS      *int64   `json:"wait_ms,omitempty"`
	RequestID   *string  `json:"request_id,omitempty"`
	TTLMS       *int64   `json:"ttl_ms,omitempty"`
	WorkspaceID *string  `json:"workspace_id,omitempty"`
	View        *string  `json:"view,omitempty"`
}

// By returns r as a request of a worker.
func (r TurnRequest) By(worker *string) LeaseRequest {
	return LeaseRequest{
		WorkerID: worker, MaxUnits: r.MaxUnits, Types: r.Types, MaxLeases: r.MaxLeases, WaitMS: r.WaitMS,
		RequestID: r.RequestID, TTLMS: r.TTLMS, WorkspaceID: r.WorkspaceID, View: r.View,
	}
}

// Grant is one lease together with the job it is for.
type Grant struct {
	Lease Lease `json:"lease"`
	Job   Job   `json:"job"`
}

// DenialCode says why there is no lease now.
type DenialCode string

// The reasons for a denial.
const (
	NoCapacity      DenialCode = "no_capacity"
	NextJobTooLarge DenialCode = "next_job_too_large"
	NoEligibleJob   DenialCode = "no_eligible_job"
	Draining        DenialCode = "draining"
)

// Denial is "no lease now, ask again in RetryAfterMS": a normal answer, not an error.
type Denial struct {
	Denied       bool       `json:"denied"`
	Code         DenialCode `json:"code"`
	Reason       string     `json:"reason"`
	RetryAfterMS int64      `json:"retry_after_ms"`
}

// Heartbeat is a worker's sign that it still runs a leased job.
type Heartbeat struct {
	WorkerID   *string         `json:"worker_id"`
	Progress   *float64        `json:"progress,omitempty"`
	Message    *string         `json:"message,omitempty"`
	Checkpoint json.RawMessage `json:"checkpoint,omitempty"`
	TTLMS      *int64          `json:"ttl_ms,omitempty"`
	Output     []OutputChunk   `json:"output,omitempty"` // at most MaxOutputBeat bytes
	// MessagesSeen confirms the messages to the job up to this number. They are not sent again.
	MessagesSeen *int64 `json:"messages_seen,omitempty"`
}

// HeartbeatAnswer says until when the lease lives now and when to beat again.
type HeartbeatAnswer struct {
	OK               bool    `json:"ok"`
	ExpiresAt        Instant `json:"expires_at"`
	HeartbeatAfterMS int64   `json:"heartbeat_after_ms"`
	CancelRequested  bool    `json:"cancel_requested"`
	// Messages are the first that the worker has not confirmed, in order. There may be more.
	Messages []Message `json:"messages"`
}

// CancelWait asks to be notified about the leases of a worker, or about one of them, before their next heartbeats.
type CancelWait struct {
	WorkerID *string `json:"worker_id"`
	LeaseID  *string `json:"lease_id,omitempty"`
	WaitMS   *int64  `json:"wait_ms,omitempty"`
}

// StoppedLeases are the leases of a worker whose work must stop, or whose jobs have a message. Lists are never null.
type StoppedLeases struct {
	// LeaseIDs are those of cancelled jobs. They live until their worker ends them.
	LeaseIDs []LeaseID `json:"lease_ids"`
	// EndedIDs are those that an operator or the monitor has ended.
	EndedIDs []LeaseID `json:"ended_ids"`
	// MessagedIDs are those of jobs with new messages. The answers to their heartbeats have them.
	MessagedIDs []LeaseID `json:"messaged_ids"`
}

// Completion is the end of an attempt as its worker reports it. Question and ExpiresInS belong to the status "waiting".
type Completion struct {
	WorkerID   *string         `json:"worker_id"`
	Status     *string         `json:"status"`
	Result     json.RawMessage `json:"result,omitempty"`
	Error      *string         `json:"error,omitempty"`
	Retryable  *bool           `json:"retryable,omitempty"`
	Progress   *float64        `json:"progress,omitempty"`
	Message    *string         `json:"message,omitempty"`
	Checkpoint json.RawMessage `json:"checkpoint,omitempty"`
	Question   *Asking         `json:"question,omitempty"`
	ExpiresInS *int64          `json:"expires_in_s,omitempty"`
}

// LeaseCompletion is a Completion inside a batch, naming its lease.
type LeaseCompletion struct {
	LeaseID   *string         `json:"lease_id"`
	Status    *string         `json:"status"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *string         `json:"error,omitempty"`
	Retryable *bool           `json:"retryable,omitempty"`
}

// Release gives a lease back without costing the job an attempt.
type Release struct {
	WorkerID   *string         `json:"worker_id"`
	DelayMS    *int64          `json:"delay_ms,omitempty"`
	Progress   *float64        `json:"progress,omitempty"`
	Message    *string         `json:"message,omitempty"`
	Checkpoint json.RawMessage `json:"checkpoint,omitempty"`
	Reason     *string         `json:"reason,omitempty"`
}

// The reasons of a release that is no interruption of the job. A release without a reason is one.
const (
	// ReleaseCannotStart: the worker could not begin, for lack of space, memory or files.
	ReleaseCannotStart = "cannot_start"
	// ReleaseFolderHeld: an earlier attempt holds the job's folder and does not end. It raises AlertHung.
	ReleaseFolderHeld = "folder_held"
	// ReleaseUndelivered: a worker that stops gives back what its handler was never given, or a message whose delivery
	// must not count.
	ReleaseUndelivered = "undelivered"
)
