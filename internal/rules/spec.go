package rules

import (
	"encoding/json"
	"time"

	"lessor"
)

// Lane is what makes jobs alike for a grant: all jobs of one lane wait in one line.
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

// Spec is what a job is. It never changes after submission.
type Spec struct {
	ID             lessor.JobID
	Lane           Lane
	LaneID         LaneID
	Seq            int64 // its place among its kind, for life
	Payload        json.RawMessage
	Tags           []string
	IdempotencyKey string // "" = none
	BodyHash       [32]byte
	MaxRuntime     time.Duration // 0 = no limit
	MaxAttempts    int
	BackoffFirst   time.Duration
	BackoffMax     time.Duration
	RunAt          lessor.Instant // 0 = at once
	TickAt         lessor.Instant
	TraceID        string
	Actor          string // who submitted it
	CreatedAt      lessor.Instant
	// ResumedFrom is the job that a new one goes on from. Its record tells it; it is not kept here.
	ResumedFrom lessor.JobID
	// Kept is for the first Turn of a job that was just inserted; see there.
	Kept int64
}

// Turn is a job's standing between and during attempts. It travels with the job from queue to lease and back.
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
	// Kept is the store's own note of where it keeps the row of a job that was never leased; 0 = none. Others pass it on.
	Kept int64
}

// Held is a live lease.
type Held struct {
	ID          lessor.LeaseID
	Turn        Turn // as of this attempt: Attempt counts it, Fence is its own
	Tenant      lessor.TenantID
	LockKey     string
	Units       int
	Worker      string
	Taker       string         // how the record names who took it: the name of the token; "" = it was not noted
	Token       lessor.TokenID // with which it was taken; zero = none
	Bound       bool           // that token is bound to the tenant
	RequestID   string
	WorkspaceID string
	TTL         time.Duration // ttl + grace
	MaxRuntime  time.Duration // 0 = no limit
	IssuedAt    lessor.Instant
	ExpiresAt   lessor.Instant
	FirstBeatAt lessor.Instant // 0 = still leased, not running
	BeatAt      lessor.Instant
	CancelAt    lessor.Instant // 0 = no cancel was asked for
	WatchUntil  lessor.Instant // held for a watcher until then; 0 = not watched
	Reattached  bool
}

// State returns the state of the job under this lease.
func (h *Held) State() lessor.State {
	if h.FirstBeatAt != 0 {
		return lessor.Running
	}
	return lessor.Leased
}

// Steps counts the entries of the job's record while this lease lives: Turn.Steps up to the grant, and what came since.
func (h *Held) Steps() int {
	n := h.Turn.Steps
	if h.FirstBeatAt != 0 {
		n++
	}
	if h.CancelAt != 0 {
		n++
	}
	if h.Reattached {
		n++
	}
	return n
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
	Error       string // what the worker said went wrong
}

// Outcome is how an attempt ended.
type Outcome string

// The outcomes of an attempt. Released means that it was given back and does not count.
const (
	OutcomeCompleted Outcome = "completed"
	OutcomeFailed    Outcome = "failed"
	OutcomeExpired   Outcome = "expired"
	OutcomeCancelled Outcome = "cancelled"
	OutcomeReleased  Outcome = "released"
)

// Said is the call with which a worker ended its attempt; a repetition of the same call is answered the same.
type Said string

// What ended an attempt. SaidNothing is an end that the worker did not ask for.
const (
	SaidNothing   Said = ""
	SaidCompleted Said = "completed"
	SaidFailed    Said = "failed"
	SaidCancelled Said = "cancelled"
	SaidReleased  Said = "released"
)

// Wait is why and until when a job waits outside the queue.
type Wait struct {
	Until lessor.Instant
	State lessor.State // queued (its time has not come), failed or expired (a retry)
}

// Done is a job's end: its last attempt, or a cancellation without a lease, which a Note tells of.
type Done struct {
	State   lessor.State
	Attempt Attempt // Attempt.Lease is zero when the end came without a lease
	Result  json.RawMessage
}

// Note is an entry of the record that no attempt tells: a cancel request, a cancellation without a lease, an operator's
// retry. Held places it during the lease with this fence, otherwise after that lease's end.
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
	// QueuedAt is when the job had come into the queue, for a note on a queued job.
	QueuedAt lessor.Instant
}

// Report is what a worker last told about its progress.
type Report struct {
	Job        lessor.JobID
	Progress   *float64
	Message    *string
	Checkpoint json.RawMessage
	At         lessor.Instant
	// Highest is the highest progress so far: a store that merges two reports keeps the higher one.
	Highest *float64
	// Mark is how far the job had come at the last release that counted; nil = there was none.
	Mark *Mark
}

// Standing is all that is known about a job at one moment: what it is, where it is, and what it last reported.
type Standing struct {
	Spec   *Spec
	Place  Place
	Turn   Turn
	Wait   Wait  // Place == Delayed
	Held   *Held // Place == Leased
	Done   *Done // Place == Ended
	Report *Report
	// LastError is the error of the last attempt that failed, for a job that goes on, and ErrorLease its lease: of attempts after
	// which the job went on.
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

// History is what the record of a job is told from.
type History struct {
	Standing Standing
	Attempts []Attempt // that ended and after which the job went on, by fence
	Notes    []Note    // in the order they were made
}
