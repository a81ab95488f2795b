package scheduler

import (
	"context"
	"errors"
	"io"
	"time"

	"lessor"
	"lessor/internal/fold"
	"lessor/internal/rules"
)

// Store keeps jobs, leases and their record. It loads and saves; it decides nothing. storetest says what it must do.
//
// Errors of its methods are faults, but for the four below, which a store wraps so that the scheduler can tell what to
// do about them.
type Store interface {
	// Update runs fn in one write transaction and returns after its commit is durable. Writers run one at a time. If fn
	// returns an error, or the commit fails, nothing was changed, unless the error is ErrUnknownOutcome.
	Update(ctx context.Context, fn func(Tx) error) error
	// View runs fn on one consistent snapshot of what was committed. Views run beside each other and beside Update.
	View(ctx context.Context, fn func(View) error) error
	// Serve notes that a heartbeat could be accepted now (rules.Serve): it fails or waits where a commit of one would. With anew
	// service begins now, whatever was noted before. Update does the same as its first act, never anew.
	Serve(ctx context.Context, anew bool) (rules.Serving, error)
	// Rate notes this node's busy rating and returns the highest of all nodes that was noted within life.
	Rate(ctx context.Context, busy int, life time.Duration) (int, error)
	// Meet notes what this node knows of its workers, and returns what other nodes noted within life.
	Meet(ctx context.Context, known []byte, life time.Duration) ([][]byte, error)
	// Backup writes a consistent copy of the store, as of one commit, while writers go on.
	Backup(ctx context.Context, w io.Writer) error
	// Check looks at the store's own health (settings, integrity, version) and reports what it finds.
	Check(ctx context.Context) []Finding
	// Seal hides the store's numbers in what callers see. Its key was made with the store and is the same on every node.
	Seal() *rules.Seal
	// Shared reports whether other nodes may write the store too. If so, every commit that changes the fold publishes how,
	// and whoever decides about grants follows first.
	Shared() bool
	Close() error
}

// Sender is a store that can be sent a transaction while the commit of the one before is on its way.
type Sender interface {
	// Send is Update that returns once the commit was sent; wait returns what Update would have. The clock of the transaction may be reckoned. A lone node
	// may send the next one before that has landed: what that one reads waits by itself, and if the one before fails it fails too, with
	// ErrAgain, as it does if the node was not alone.
	Send(ctx context.Context, lone bool, fn func(Tx) error) (wait func() error, err error)
}

// loneTx is a transaction of a store that knows whether other nodes work on it now. What is published when there is none need only
// say that something was.
type loneTx interface{ Lone() bool }

// rewinder is a store that may go back to an older state. WentBack tells once how that was seen, "" if it was not.
type rewinder interface{ WentBack() string }

// Errors that a store tells apart.
var (
	// ErrFull: there is no space. Nothing was changed; it may go on by itself.
	ErrFull = errors.New("store is full")
	// ErrUnreachable: the store did not answer. Nothing was changed.
	ErrUnreachable = errors.New("store is out of reach")
	// ErrUnknownOutcome: the answer to a commit was lost, or a standby that it waits for did not confirm it.
	ErrUnknownOutcome = errors.New("outcome of the commit is unknown")
	// ErrBroken: an I/O error after which nothing that was written can be trusted. The process must stop.
	ErrBroken = errors.New("store is broken")
	// ErrBadCall: the store refused a value. One call of the batch is guilty; the others may be tried without it.
	ErrBadCall = errors.New("store refused a value")
	// ErrAgain: the transaction met another node's and lost. Nothing was changed; the same batch may be repeated at once.
	ErrAgain = errors.New("transaction must be repeated")
	// ErrWentBack: the store went back to an older state, or is another one: a standby was promoted, a copy restored. Nothing was changed. What was
	// read before counts no more; the same batch may be repeated on what is read anew.
	ErrWentBack = errors.New("store went back")
	// ErrMoved: a row was not where a Move said it was. The index no longer matches the tables and must be rebuilt.
	ErrMoved = errors.New("row is not where it was")
)

// Finding is one line of a store's health check.
type Finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// Tx is one write transaction. All methods take and return many at once. A method that is given nothing does nothing.
//
// Nodes lock in one order, so that they never wait for each other in a circle: keys and new jobs (Claim, Insert), lease rows
// (Leases), waiting jobs (Due), circuits, the gate, queue rows and new leases (Move). Lock is for a transaction of its own. What a
// method that locks returns is as it was after the waiting, and so is Now.
type Tx interface {
	View
	KernelTx

	// Lanes returns the numbers of lanes, registering those not yet known, and ends the notice of those that are under one. Numbers are
	// never given again.
	Lanes(ctx context.Context, lanes []rules.Lane) ([]rules.LaneID, error)
	// NoticeLanes puts lanes that are under no notice under this one. DropLanes removes those of a page that are still under the
	// notice that is said, and returns them; no job may refer to them.
	NoticeLanes(ctx context.Context, ids []rules.LaneID, notice int64) error
	DropLanes(ctx context.Context, notices map[rules.LaneID]int64) ([]rules.LaneID, error)
	// Seqs reserves n places in line, larger than all before, and returns the first.
	Seqs(ctx context.Context, n int) (int64, error)
	// Claim gives each free idempotency key to the job of its first claim, and returns who holds each key then. Unclaim
	// takes back keys that this transaction gave.
	Claim(ctx context.Context, claims []Claim) (map[Key]KeyHolder, error)
	Unclaim(ctx context.Context, keys []Key) error
	// Insert writes new jobs, each under an id that is not there yet, and sets Kept in each spec. Where they wait is a Move
	// from rules.Nowhere; one call moves all with the same Kept. The store may keep the specs: they must not be changed any more.
	Insert(ctx context.Context, specs []*rules.Spec) error

	// Peek returns the live lease rows with these ids, lapsed or not, without waiting for anybody; Leases locks them for change
	// in this transaction.
	Peek(ctx context.Context, ids []lessor.LeaseID) (map[lessor.LeaseID]*rules.Held, error)
	Leases(ctx context.Context, ids []lessor.LeaseID) (map[lessor.LeaseID]*rules.Held, error)
	// Requested returns the live leases that were granted under these requests.
	Requested(ctx context.Context, refs []RequestRef) (map[RequestRef][]*rules.Held, error)
	// SaveLeases writes what a heartbeat, a cancel request or a watch changed in live leases: ExpiresAt, FirstBeatAt, BeatAt, TTL,
	// CancelAt, WatchUntil, Reattached.
	SaveLeases(ctx context.Context, held []*rules.Held) error
	// SaveReports merges progress, message and checkpoint: a nil field keeps what was there.
	SaveReports(ctx context.Context, reports []rules.Report) error

	// Lock returns what is known about jobs, like Standings, and keeps them where they are until the end of the transaction.
	Lock(ctx context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Standing, error)
	// Gate waits until no other node decides about grants: only who holds it may take rows from the queue, or change what
	// grants depend on. It is held until the end of the transaction.
	Gate(ctx context.Context) error
	// Publish tells the other nodes what this transaction does to the fold. Once a transaction, as its last act.
	Publish(ctx context.Context, data []byte) error

	// SaveServing keeps the floor and the brake.
	SaveServing(ctx context.Context, s rules.Serving) error

	// Due returns waiting jobs whose time has come, the earliest first.
	Due(ctx context.Context, now lessor.Instant, limit int) ([]Waiting, error)
	// Ahead locks and returns jobs that wait after an attempt, and whose wait began after an instant; at most limit, in no order.
	Ahead(ctx context.Context, after lessor.Instant, limit int) ([]Waiting, error)
	// Move takes each job's row from its place to the next, with the record of it. A row that is not where its Move says
	// is ErrMoved and fails the transaction. No job is in two Moves of one call.
	Move(ctx context.Context, moves []Move) error
	// Note appends entries to jobs' records.
	Note(ctx context.Context, notes []rules.Note) error

	// SaveSetting stores a named value; nil removes it.
	SaveSetting(ctx context.Context, name string, value []byte) error
	// SaveToken and DeleteToken keep access tokens; DeleteToken reports whether there was one.
	SaveToken(ctx context.Context, t Token) error
	DeleteToken(ctx context.Context, id lessor.TokenID) (bool, error)

	// Strip forgets what is large about up to limit jobs that ended before the instant (payload, result, report) and frees their
	// idempotency keys; their record stays. It returns how many; each is stripped once, those that ended first going first.
	Strip(ctx context.Context, before lessor.Instant, limit int) (int, error)
	// Purge removes up to limit jobs that ended before the instant, with everything about them, and returns how many.
	Purge(ctx context.Context, before lessor.Instant, limit int) (int, error)
}

// View is what can be read.
type View interface {
	KernelView

	// Now is the store's clock, one value for the whole transaction or snapshot.
	Now() lessor.Instant
	// Serving is the floor under all leases, as of Now.
	Serving() rules.Serving

	// Standings returns what is known about jobs; unknown ids are left out.
	Standings(ctx context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Standing, error)
	// Specs returns what jobs are, without where they are and without BodyHash; unknown ids are left out. They are shared and
	// must not be changed.
	Specs(ctx context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Spec, error)
	// Reports returns what jobs last reported; those that never did are left out.
	Reports(ctx context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Report, error)
	// List returns standings that match q, newest job first, and whether more may follow the last one looked at.
	List(ctx context.Context, q ListQuery) (ListPage, error)
	// History returns what the record of one job is told from; nil if there is no such job.
	History(ctx context.Context, id lessor.JobID) (*rules.History, error)
	// LeaseEnds tells how leases that are over ended; those not remembered are left out.
	LeaseEnds(ctx context.Context, ids []lessor.LeaseID) (map[lessor.LeaseID]LeaseEnd, error)
	// LeaseList returns live leases that match q, newest first.
	LeaseList(ctx context.Context, q LeaseQuery) ([]ListedLease, error)
	// WorkspaceLeases returns the live leases that were requested with a workspace's id, in no order. Other leases cost nothing.
	WorkspaceLeases(ctx context.Context, workspace string) ([]*rules.Held, error)

	// EachLane, EachQueued and EachLease read whole tables, for the index in memory; each stops at fn's first error.
	EachLane(ctx context.Context, fn func(rules.LaneID, rules.Lane) error) error
	EachQueued(ctx context.Context, fn func(rules.Turn) error) error
	EachLease(ctx context.Context, fn func(*rules.Held) error) error
	// NextDue is when the next waiting job is due; 0 if none waits.
	NextDue(ctx context.Context) (lessor.Instant, error)

	// LanesByID returns the lanes with these numbers; unknown ones are left out.
	LanesByID(ctx context.Context, ids []rules.LaneID) (map[rules.LaneID]rules.Lane, error)
	// NoticedLanes returns the lanes that are under a notice, and which.
	NoticedLanes(ctx context.Context) (map[rules.LaneID]int64, error)
	// JobLanes calls fn with the lanes of up to limit jobs behind one, in the order of their ids, and returns the last; nil if there are none.
	JobLanes(ctx context.Context, after lessor.JobID, limit int, fn func(rules.LaneID)) (*lessor.JobID, error)
	// Position is how far the other nodes' streams of changes are; Changes returns what they published after a position, each
	// stream in its order. Both are empty for a store that is not shared.
	Position(ctx context.Context) (Position, error)
	Changes(ctx context.Context, after Position) ([]Change, error)

	// Setting returns a named value, nil if it is not set.
	Setting(ctx context.Context, name string) ([]byte, error)
	// Tokens returns all access tokens, newest first.
	Tokens(ctx context.Context) ([]Token, error)
}

// Move takes one job's row from one place to another. "Moves delete first": the row at From must be there.
type Move struct {
	From rules.Place
	To   rules.Place
	// Turn is what the row at To carries (InQueue, Delayed); its Job and Seq also name the row at From for InQueue and Delayed.
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

// Key is an idempotency key of one tenant.
type Key struct {
	Tenant lessor.TenantID
	Key    string
}

// Claim asks for an idempotency key for a job.
type Claim struct {
	Key
	KeyHolder
}

// Change is what one commit of another node did to the fold; Position is the last change seen of each stream.
type (
	Change   = fold.Change
	Position = fold.Position
)

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
	// Claimed leaves out jobs that were never granted; Status (not CIRCUIT_OPEN) also those whose run has another.
	Claimed    bool
	Status     lessor.RunStatus
	Definition string // jobs of this definition alone
	Trace      string // jobs with this trace id alone
	After      *lessor.JobID
	Limit      int
}

// ListPage is one page of a list. A store may look at a bounded number of jobs for one page, so a page may hold fewer
// than were asked for, or none, and still have a successor.
type ListPage struct {
	Standings []*rules.Standing
	// Next is the last job looked at, if others may follow.
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
