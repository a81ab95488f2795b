package lessor

import (
	"encoding/json"
	"fmt"
)

// State says where a job is in its life.
type State string

// The states of a job. Failed and expired are final only when no attempt is left; a job that waits for its next
// attempt shows them together with RetryAt.
const (
	Queued    State = "queued"
	Leased    State = "leased"
	Running   State = "running"
	Waiting   State = "waiting" // for an answer to its question
	Completed State = "completed"
	Failed    State = "failed"
	Expired   State = "expired"
	Cancelled State = "cancelled"
)

// States lists every state in the order of a job's life.
func States() []State {
	return []State{Queued, Leased, Running, Waiting, Completed, Failed, Expired, Cancelled}
}

// Priority orders jobs strictly: no job runs while one of a higher priority could.
type Priority uint8

// The priorities, highest first. Normal is the default of a submission.
const (
	High Priority = iota
	Normal
	Low
	Background
	Priorities int = iota // how many there are
)

var priorityNames = [Priorities]string{"high", "normal", "low", "background"}

// ParsePriority reads the wire name of a priority.
func ParsePriority(s string) (Priority, bool) {
	for i, name := range priorityNames {
		if s == name {
			return Priority(i), true
		}
	}
	return 0, false
}

// String returns the wire name.
func (p Priority) String() string {
	if int(p) < len(priorityNames) {
		return priorityNames[p]
	}
	return fmt.Sprintf("priority(%d)", uint8(p))
}

// MarshalText writes the wire name.
func (p Priority) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the wire name.
func (p *Priority) UnmarshalText(b []byte) error {
	v, ok := ParsePriority(string(b))
	if !ok {
		return fmt.Errorf("unknown priority %q", b)
	}
	*p = v
	return nil
}

// Backoff bounds the delay before a retry.
type Backoff struct {
	FirstMS int64 `json:"first_ms"`
	MaxMS   int64 `json:"max_ms"`
}

// Submission is the body of a submitted job. Only Type is required; what is nil takes its default.
type Submission struct {
	Type           *string         `json:"type"`
	Payload        json.RawMessage `json:"payload,omitempty"`
	Priority       *string         `json:"priority,omitempty"`
	RequestedUnits *int64          `json:"requested_units,omitempty"`
	Unique         *bool           `json:"unique,omitempty"`
	IdempotencyKey *string         `json:"idempotency_key,omitempty"`
	Tags           []string        `json:"tags,omitempty"`
	MaxRuntimeS    *int64          `json:"max_runtime_s,omitempty"`
	MaxAttempts    *int64          `json:"max_attempts,omitempty"`
	RunAt          *string         `json:"run_at,omitempty"`
	DelayMS        *int64          `json:"delay_ms,omitempty"` // instead of RunAt: from the submission on
	TenantID       *string         `json:"tenant_id,omitempty"`
	FairnessClass  *string         `json:"fairness_class,omitempty"`
	LockKey        *string         `json:"lock_key,omitempty"`
	Backoff        *BackoffAsk     `json:"backoff,omitempty"`
}

// BackoffAsk is a submission's own backoff; a nil bound takes the server's.
type BackoffAsk struct {
	FirstMS *int64 `json:"first_ms,omitempty"`
	MaxMS   *int64 `json:"max_ms,omitempty"`
}

// Job is a job as callers see it.
type Job struct {
	ID              JobID           `json:"job_id"`
	Type            string          `json:"type"`
	Priority        Priority        `json:"priority"`
	RequestedUnits  int             `json:"requested_units"`
	Unique          bool            `json:"unique"`
	State           State           `json:"state"`
	Payload         json.RawMessage `json:"payload"`
	IdempotencyKey  *string         `json:"idempotency_key"`
	Tags            []string        `json:"tags"`
	MaxRuntimeS     *int64          `json:"max_runtime_s"`
	LeaseID         *LeaseID        `json:"lease_id"`
	CreatedAt       Instant         `json:"created_at"`
	UpdatedAt       Instant         `json:"updated_at"`
	TenantID        TenantID        `json:"tenant_id"`
	FairnessClass   string          `json:"fairness_class"`
	LockKey         *string         `json:"lock_key"`
	Attempt         int             `json:"attempt"`
	MaxAttempts     int             `json:"max_attempts"`
	RetryAt         Instant         `json:"retry_at"`
	RunAt           Instant         `json:"run_at"`
	TraceID         string          `json:"trace_id"`
	Progress        *float64        `json:"progress"`
	Message         *string         `json:"message"`
	Checkpoint      json.RawMessage `json:"checkpoint"`
	Result          json.RawMessage `json:"result"`
	Error           *string         `json:"error"`
	Interruptions   int             `json:"interruptions"`
	JournalEntries  int             `json:"journal_entries"`
	CancelRequested bool            `json:"cancel_requested"`
	Reattached      bool            `json:"reattached"`
	DefinitionID    *string         `json:"definition_id"`
	TickAt          Instant         `json:"tick_at"`
	Question        *Question       `json:"question"`
	MessagesSent    int64           `json:"messages_sent"`
	MessagesSeen    int64           `json:"messages_seen"` // by its worker
}

// Final reports whether nothing more happens to the job, unless an operator retries it.
func (j *Job) Final() bool {
	switch j.State {
	case Completed, Cancelled:
		return true
	case Failed, Expired:
		return j.RetryAt.IsZero()
	default:
		return false
	}
}

// JobFilter selects jobs for a list, newest first. Zero fields do not filter.
type JobFilter struct {
	State  State
	Type   string
	Tag    string
	Tenant *TenantID
	Limit  int
	Cursor string
}

// Why tells why a job does not run now, the first reason first.
type Why struct {
	JobID   JobID    `json:"job_id"`
	Place   *int     `json:"place"`
	Reasons []Reason `json:"reasons"`
}

// Reason is one thing that keeps a job from running.
type Reason struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}
