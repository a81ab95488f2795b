package scheduler

import (
	"lessor"
	"lessor/internal/fold"
	"lessor/internal/rules"
)

// Move takes one job's row from one place to another. The row at From must be there.
type Move struct {
	From rules.Place
	To   rules.Place
	// Turn is what the row at To carries (InQueue, Delayed); its Job and Seq also name the row at From for InQueue and
	// Delayed.
	Turn rules.Turn
	// Held is the lease that ends (From == Leased) or begins (To == Leased).
	Held *rules.Held
	// Wait is for To == Delayed.
	Wait rules.Wait
	// Attempt is the attempt that ended and after which the job goes on, if there was one.
	Attempt *rules.Attempt
	// Done is for To == Ended.
	Done *rules.Done
}

// Seen is how far the messages to a job were seen, or are not delivered any more. Those with a key are kept after
// Keyless.
type Seen struct {
	Job           lessor.JobID
	UpTo, Keyless int64
}

// Key is an idempotency key of one tenant.
type Key struct {
	Tenant lessor.TenantID
	Key    string
}

// JobKey is an idempotency key and the job that holds it or is to hold it.
type JobKey struct {
	Key
	KeyHolder
}

// Change is what one commit of another node did to the fold.
type Change = fold.Change

// Position is the last change seen of each stream.
type Position = fold.Position

// Ended is the number of a change that says: the stream has ended and was removed.
const Ended = fold.Ended

// KeyHolder is the job that was submitted under a key, and what its body was.
type KeyHolder struct {
	Job      lessor.JobID
	BodyHash [32]byte
}

// ListQuery selects jobs, newest first, after the job named After.
type ListQuery struct {
	State  lessor.State
	Type   string
	Tag    string
	Tenant *lessor.TenantID
	// Claimed leaves out jobs that were never granted. Status (not CIRCUIT_OPEN) leaves out those whose run has another
	// status. QUEUED means jobs of definitions that were never granted; every other status leaves those out.
	Claimed    bool
	Status     lessor.RunStatus
	Definition string // jobs of this definition alone
	Trace      string // jobs with this trace id alone
	After      *lessor.JobID
	Limit      int
}

// MatchesPlace reports whether a list contains a job in this place and state. A fence of 0 is that of a job that was
// never granted.
func (q *ListQuery) MatchesPlace(p rules.Place, s lessor.State, fence int64) bool {
	claimed := fence != 0
	return (q.State == "" || s == q.State) && (!q.Claimed || claimed) &&
		(q.Status == "" || rules.RunStatus(p, s, claimed) == q.Status && claimed != (q.Status == lessor.RunQueued))
}

// FiltersLanes reports whether a job matches only if its lane does.
func (q *ListQuery) FiltersLanes() bool {
	return q.Type != "" || q.Tenant != nil || q.Definition != "" || q.Status == lessor.RunQueued
}

// MatchesLane reports whether a list contains jobs of this lane.
func (q *ListQuery) MatchesLane(l *rules.Lane) bool {
	return (q.Type == "" || l.Type == q.Type) && (q.Tenant == nil || l.Tenant == *q.Tenant) &&
		(q.Definition == "" || l.Definition == q.Definition) && (q.Status != lessor.RunQueued || l.Definition != "")
}

// ListPage is one page of a list. A store may read a bounded number of jobs for one page, so a page may hold fewer
// than were asked for, or none, and still have a successor.
type ListPage struct {
	Standings []*rules.Standing
	// Next is the last job read, if others may follow.
	Next *lessor.JobID
}

// Token is an access token as it is stored: never the token itself.
type Token struct {
	ID        lessor.TokenID
	Hash      [32]byte
	Name      string
	Role      string
	Tenant    *lessor.TenantID
	CreatedAt lessor.Instant
	ExpiresAt lessor.Instant // 0 = never
}

// EntryRef names an entry of a job's journal.
type EntryRef struct {
	Job lessor.JobID
	Key string
}

// RequestRef names a lease request that may be repeated.
type RequestRef struct {
	rules.Holder
	RequestID string
}

// LeaseEnd is how a lease that is over ended.
type LeaseEnd struct {
	Worker  string
	Tenant  lessor.TenantID
	Outcome rules.Outcome
	Said    rules.Said
	Reason  string
}

// LeaseQuery selects live leases, newest first, after the place After: of one worker or of all (""), of one tenant, and
// those that were taken with one token.
type LeaseQuery struct {
	Worker string
	Tenant *lessor.TenantID
	Token  *lessor.TokenID
	After  *LeasePlace
	Limit  int
}

// LeasePlace is where a lease stands in a list that is newest first: two numbers of the store, in the order of which
// the list is. Callers see it sealed. No lease takes the place of another, so a list goes on behind one that has ended.
type LeasePlace struct{ A, B int64 }

// ListedLease is a live lease in a list.
type ListedLease struct {
	*rules.Held
	Type  string // of its job
	Place LeasePlace
}

// DefinitionQuery selects definitions.
type DefinitionQuery struct {
	Tenant *lessor.TenantID
	Module string
	After  *Named
	Limit  int
}

// OpenRun is a job of a definition that has not ended.
type OpenRun struct {
	Job     lessor.JobID
	Claimed bool // it was granted at least once
}

// TickQuery selects ticks From..To, both included (0 = no bound), after After.
type TickQuery struct {
	Definition string
	Tenant     lessor.TenantID
	From, To   lessor.Instant
	After      lessor.Instant // 0 = from the beginning
	Limit      int
}

// CircuitTickQuery selects ticks under an open circuit whose run is older than After.
type CircuitTickQuery struct {
	Definition string // "" = all
	Tenant     *lessor.TenantID
	Run        *lessor.JobID // this one alone
	After      *lessor.JobID
	Limit      int
}

// Block is why jobs of a definition may not run as others do.
type Block = fold.Block

// CircuitQuery selects circuits.
type CircuitQuery struct {
	Tenant *lessor.TenantID
	After  *Named
	Limit  int
}

// AlertQuery selects alerts.
type AlertQuery struct {
	Tenant *lessor.TenantID
	Open   bool
	After  *lessor.AlertID
	Limit  int
}

// AuditQuery selects audit entries.
type AuditQuery struct {
	Actor  string
	Object string
	After  *lessor.AuditID
	Limit  int
}

// LockQuery selects held locks.
type LockQuery struct {
	Tenant *lessor.TenantID
	After  *LeasePlace
	Limit  int
}
