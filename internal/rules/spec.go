package rules

import (
	"encoding/json"
	"time"

	"lessor"
)

// Lane is what jobs have in common for a grant: all jobs of one lane wait in one line.
type Lane struct {
	Tenant     lessor.TenantID
	Class      string
	Priority   lessor.Priority
	Type       string
	Unique     bool
	Units      int
	LockKey    string // "" = none
	Definition string // "" = a plain job
}

// LaneID is a lane's number in the store's registry.
type LaneID int64

// Spec is a job as submitted. It never changes.
type Spec struct {
	ID             lessor.JobID
	Lane           Lane
	LaneID         LaneID
	Seq            int64 // its place in the order of submission
	Payload        json.RawMessage
	Tags           []string
	IdempotencyKey string // "" = none
	BodyHash       [32]byte
	MaxRuntime     time.Duration // 0 = no limit
	MaxAttempts    int
	BackoffFirst   time.Duration
	BackoffMax     time.Duration
	RunAt          lessor.Instant // 0 = at once
	Delay          time.Duration  // RunAt counted from CreatedAt, for a job that is being stored; 0 = see RunAt
	TickAt         lessor.Instant
	TraceID        string
	Actor          string // who submitted it
	CreatedAt      lessor.Instant
	// ResumedFrom is the job that this one continues. The record has it; the stored spec does not.
	ResumedFrom lessor.JobID
	// RowRef is that of the job's first Turn. The store sets it when it inserts the job.
	RowRef int64
}

// Turn is the part of a job that moves with it from queue to lease and back.
type Turn struct {
	Job           lessor.JobID
	Lane          LaneID
	Seq           int64
	Attempt       int            // grants that counted so far
	MaxAttempts   int            // of the spec, plus what operators added
	Interruptions int            // releases that counted, up to the last; see Report.Moved
	Fence         int64          // of the last lease; 0 = never leased
	Steps         int            // entries of the job's record up to here; see Held.Steps
	QueuedAt      lessor.Instant // when it came into the queue, or began to wait
	// RowRef is the store's own reference to the row of a job that was never leased; 0 = none. Others pass it on.
	RowRef int64
}

// Held is a live lease.
type Held struct {
	ID          lessor.LeaseID
	Turn        Turn // as of this attempt: Attempt counts it, Fence is its own
	Tenant      lessor.TenantID
	LockKey     string
	Units       int
	Worker      string
	Taker       string         // the name of the token that took it; "" = not recorded
	Token       lessor.TokenID // the token that took it; zero = none
	RequestID   string
	WorkspaceID string
	MaxRuntime  time.Duration // 0 = no limit
	IssuedAt    lessor.Instant
	Life
	Bound bool // the token that took it is restricted to the tenant
}

// Life is the part of a lease that changes while it lives.
type Life struct {
	TTL         time.Duration // ttl + grace
	ExpiresAt   lessor.Instant
	FirstBeatAt lessor.Instant // 0 = still leased, not running
	BeatAt      lessor.Instant
	CancelAt    lessor.Instant // when a cancel was requested; 0 = never
	WatchUntil  lessor.Instant // until when a monitor holds it; 0 = not watched
	Reattached  int            // how often its command was found alive after a restart
	Journal     JournalSize    // of the job, once entries were appended under this lease; before that it is zero
}

// State returns the state of the job under this lease.
func (h *Held) State() lessor.State {
	if h.FirstBeatAt != 0 {
		return lessor.Running
	}
	return lessor.Leased
}

// Steps counts the entries of the job's record while this lease lives: Turn.Steps up to the grant, and those since.
func (h *Held) Steps() int {
	n := h.Turn.Steps
	if h.FirstBeatAt != 0 {
		n++
	}
	if h.CancelAt != 0 {
		n++
	}
	return n + h.Reattached
}

// Attempt is an attempt that ended.
type Attempt struct {
	Turn        Turn
	Lease       lessor.LeaseID
	Worker      string
	Taker       string // as in Held
	GrantedAt   lessor.Instant
	FirstBeatAt lessor.Instant
	EndedAt     lessor.Instant
	Outcome     Outcome
	Said        Said
	Reason      string // a stable word: completed, failed, lease_expired, released, revoked, max_runtime_exceeded, …
	Actor       string // who ended it
	Error       string // the worker's text
}

// Outcome is how an attempt ended.
type Outcome string

// The outcomes of an attempt. One that was released or that asked a question does not count.
const (
	OutcomeCompleted Outcome = "completed"
	OutcomeFailed    Outcome = "failed"
	OutcomeExpired   Outcome = "expired"
	OutcomeCancelled Outcome = "cancelled"
	OutcomeReleased  Outcome = "released"
	OutcomeWaiting   Outcome = "waiting" // it asked a question
)

// Said is the call with which a worker ended its attempt, with a digest of what it sent. A repetition of the same call
// gets the same answer.
type Said string

// The calls that end an attempt. SaidNothing is an end that the worker did not ask for.
const (
	SaidNothing   Said = ""
	SaidCompleted Said = "completed"
	SaidFailed    Said = "failed"
	SaidCancelled Said = "cancelled"
	SaidReleased  Said = "released"
	SaidWaiting   Said = "waiting"
)

// Wait says why and until when a job waits outside the queue.
type Wait struct {
	Until lessor.Instant
	State lessor.State // queued (its time has not come), failed or expired (a retry), waiting (for an answer)
}

// Done is a job's end: its last attempt, or an end without a lease, which has a Note.
type Done struct {
	State   lessor.State
	Attempt Attempt // Attempt.Lease is zero when the end came without a lease
	Result  json.RawMessage
}

// Note is an entry of the record that does not follow from an attempt: a cancel request, an end without a lease, an
// operator's retry. Held places it during the lease with this fence, otherwise after that lease's end.
type Note struct {
	Job     lessor.JobID
	Fence   int64
	Held    bool
	At      lessor.Instant
	From    lessor.State
	To      lessor.State
	Actor   string
	Reason  string
	Lease   lessor.LeaseID
	Attempt int
	// QueuedAt is when the job was queued, for a note on a queued job.
	QueuedAt lessor.Instant
}

// Report is the last progress that a worker reported.
type Report struct {
	Job        lessor.JobID
	Progress   *float64
	Message    *string
	Checkpoint json.RawMessage
	At         lessor.Instant
	// Highest is the highest progress so far: a store that merges two reports keeps the higher one.
	Highest *float64
	// Interrupted is the progress at the last interruption; nil = there was none.
	Interrupted *Progress
	// Question is the last question, without ExpiresAt; nil = there was none.
	Question *lessor.Question
	// Entries is the number of journal entries when the last lease ended that appended some; nil = there was none.
	Entries *int
	// Sent counts the messages to the job, Seen those that its worker has confirmed.
	Sent, Seen int64
}

// Standing is the whole of a job at one moment: its spec, its place and its last report.
type Standing struct {
	Spec   *Spec
	Place  Place
	Turn   Turn
	Wait   Wait  // Place == Delayed
	Held   *Held // Place == Leased
	Done   *Done // Place == Ended
	Report *Report
	// LastError is the error of the last failed attempt after which the job went on, ErrorLease the lease of that
	// attempt.
	LastError  string
	ErrorLease lessor.LeaseID
	// StartedAt is when the job was first granted; 0 = never.
	StartedAt lessor.Instant
}

// Place is the table a job's moving row is in; the state follows from it.
type Place uint8

// The places of a job. Nowhere is a job that is being submitted.
const (
	Nowhere Place = iota
	InQueue
	Delayed
	Leased
	Ended
)

// History is what the record of a job is made from.
type History struct {
	Standing Standing
	Attempts []Attempt // after which the job went on, by fence
	Notes    []Note    // in the order they were made
}
