package scheduler

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

// Tx is one write transaction. All methods take and return many at once. A method that is given nothing does nothing.
//
// Nodes lock in one order, so that they never wait for each other in a circle: definitions, keys and new jobs
// (TakeKeys, Insert), lease rows (Leases), waiting jobs (Due), circuits, the gate, queue rows and new leases (Move).
// Lock is for a transaction of its own. What a method that locks returns is as it was after the waiting, and so is Now.
//
// After the first fault of any method the transaction cannot commit, even if fn ignores the error. A store may put
// writes off: their errors then come from a later method or from the commit.
type Tx interface {
	View
	LaneTx
	JobTx
	LeaseTx
	JournalTx
	OutputTx
	MessageTx
	MoveTx
	NodeTx
	DefinitionTx
	TickTx
	AlertTx
	SettingTx
	RetentionTx
}

// LaneTx registers lanes. Lanes fails with ErrAgain if another node removed a lane at the same moment.
type LaneTx interface {
	// Lanes returns the numbers of lanes. It registers those not yet known, and ends the notice of those that are under
	// one. Numbers are never given again.
	Lanes(ctx context.Context, lanes []rules.Lane) ([]rules.LaneID, error)
	// NoticeLanes puts lanes that are under no notice under this one. DropLanes removes those that are still under the
	// notice given, and returns them; no job may refer to them.
	NoticeLanes(ctx context.Context, ids []rules.LaneID, notice int64) error
	DropLanes(ctx context.Context, notices map[rules.LaneID]int64) ([]rules.LaneID, error)
}

// JobTx stores new jobs. Insert fails with ErrBadCall for an id that is there already.
type JobTx interface {
	// Seqs reserves n places in line, larger than all before, and returns the first.
	Seqs(ctx context.Context, n int) (int64, error)
	// TakeKeys gives each free idempotency key to the first of the jobs that want it, and returns the holder of each
	// key. FreeKeys takes back keys that this transaction gave.
	TakeKeys(ctx context.Context, wanted []JobKey) (map[Key]KeyHolder, error)
	FreeKeys(ctx context.Context, keys []Key) error
	// Insert writes new jobs, each under an id that is not there yet, and sets RowRef in each spec. A Move from
	// rules.Nowhere says where they wait; one call moves all with the same RowRef. The store may keep the specs: they
	// must not be changed any more.
	Insert(ctx context.Context, specs []*rules.Spec) error
}

// LeaseTx reads and changes live leases. SaveLeases fails with ErrMoved for a lease that is not live.
type LeaseTx interface {
	// Peek returns the live lease rows with these ids, lapsed or not, without waiting for a lock; Leases locks them for
	// change in this transaction.
	Peek(ctx context.Context, ids []lessor.LeaseID) (map[lessor.LeaseID]*rules.Held, error)
	Leases(ctx context.Context, ids []lessor.LeaseID) (map[lessor.LeaseID]*rules.Held, error)
	// Requested returns the live leases that were granted under these requests.
	Requested(ctx context.Context, refs []RequestRef) (map[RequestRef][]*rules.Held, error)
	// SaveLeases writes what a heartbeat, a cancel request or a watch changed in live leases: ExpiresAt, FirstBeatAt,
	// BeatAt, TTL, CancelAt, WatchUntil, Reattached, Journal.
	SaveLeases(ctx context.Context, held []*rules.Held) error
	// SaveReports merges progress, message, checkpoint and journal entries: a nil field keeps what was there.
	SaveReports(ctx context.Context, reports []rules.Report) error
}

// JournalTx appends to the journals of jobs. The leases of the jobs are locked. AppendEntries fails with ErrBadCall for
// a number or a key that a journal has already.
type JournalTx interface {
	// LastEntries returns the last entry of each job's journal without its data; jobs without a journal are left out.
	LastEntries(ctx context.Context, jobs []lessor.JobID) (map[lessor.JobID]rules.Entry, error)
	// KnownEntries returns the entries that have these keys.
	KnownEntries(ctx context.Context, refs []EntryRef) (map[EntryRef]rules.Entry, error)
	AppendEntries(ctx context.Context, entries []rules.Entry) error
	// CopyJournal gives a new job the journal of another, and returns how many entries that has.
	CopyJournal(ctx context.Context, from lessor.JobID, to *rules.Spec) (entries int, err error)
}

// OutputTx keeps what attempts print. Its errors are faults.
type OutputTx interface {
	// SaveOutput writes pieces; those of one stream come in order and do not overlap. What does not lie behind the end
	// of its stream is left out: it was written before, or its time is over. A piece is added to the last one of its
	// stream if it Joins it. A piece of less than Join bytes that has a gap before it goes as soon as a short piece
	// leaves a gap behind it too, so that the number of rows does not depend on the number of gaps.
	SaveOutput(ctx context.Context, pieces []rules.OutputPiece) error
	// DropOutput removes the pieces that lie inside of the ranges. Strip and Purge remove those of a job.
	DropOutput(ctx context.Context, ranges []rules.OutputMiddle) error
}

// MessageTx keeps messages to jobs. SaveMessages fails with ErrBadCall for a number or a key of a job that is there
// already. Messages that were dropped and are kept for their keys are returned by KeyedMessage alone: nil if there is
// none.
type MessageTx interface {
	KeyedMessage(ctx context.Context, id lessor.JobID, key string) (*rules.Message, error)
	SaveMessages(ctx context.Context, ms []rules.Message) error
	DropMessages(ctx context.Context, all []Seen) error
}

// MoveTx takes jobs from place to place. Move fails with ErrMoved for a row that is not where its Move says, Lock with
// ErrAgain for a job that keeps moving.
type MoveTx interface {
	// Lock returns what is known about jobs, like Standings, and keeps them where they are until the end of the
	// transaction.
	Lock(ctx context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Standing, error)
	// Due returns waiting jobs whose time has come, the earliest first.
	Due(ctx context.Context, now lessor.Instant, limit int) ([]Waiting, error)
	// Ahead locks and returns jobs that wait after an attempt and whose wait began after an instant; at most limit, in
	// no order.
	Ahead(ctx context.Context, after lessor.Instant, limit int) ([]Waiting, error)
	// SpecsAt returns what queued jobs are, in the order of their turns; nil for a job that is not known. The specs are
	// shared and must not be changed.
	SpecsAt(ctx context.Context, turns []rules.Turn) ([]*rules.Spec, error)
	// Move takes each job's row from its place to the next, with the record of it. No job is in two Moves of one call.
	Move(ctx context.Context, moves []Move) error
	// Note appends entries to jobs' records.
	Note(ctx context.Context, notes []rules.Note) error
}

// NodeTx keeps nodes in step. Gate fails with ErrAgain if another node holds the gate for too long, SaveServing if
// another node changed the floor meanwhile.
type NodeTx interface {
	// Gate waits until no other node decides about grants. Only the node that holds it may take rows from the queue, or
	// change what grants depend on. It is held until the end of the transaction.
	Gate(ctx context.Context) error
	// SoleNode reports whether no other node works on the store now. Then Publish need only say that something changed.
	SoleNode() bool
	// Publish gives the other nodes what this transaction does to the fold. Once a transaction, as its last act.
	Publish(ctx context.Context, data []byte) error
	// SaveServing keeps the floor and the brake.
	SaveServing(ctx context.Context, s rules.Serving) error
}

// DefinitionTx keeps definitions and their circuits. Definition rows are locked before all others, circuit rows after
// leases and waiting jobs and before the gate. SaveDefinitions fails with ErrAgain for one that LockDefinitions did not
// find and another node made since.
type DefinitionTx interface {
	// LockDefinitions returns the definitions with these ids, locked for change in the order of ids; unknown ones are
	// left out.
	LockDefinitions(ctx context.Context, ids []string) (map[string]*rules.Definition, error)
	// DueDefinitions locks and returns definitions whose DueAt has come and that no other node has locked, the earliest
	// first.
	DueDefinitions(ctx context.Context, now lessor.Instant, limit int) ([]*rules.Definition, error)
	// SaveDefinitions writes definitions whole, new or known. DeleteDefinitions removes them and their circuits; jobs
	// and ticks stay.
	SaveDefinitions(ctx context.Context, ds []*rules.Definition) error
	DeleteDefinitions(ctx context.Context, ids []string) error
	// LockCircuits returns the circuits of these definitions, locked for change. A definition without a row has a
	// closed circuit that never failed; it is returned and locked too, so that two nodes cannot both count the first
	// failure. Without wait, those that another node has locked are left out. The tenant is the definition's; an id
	// that names no definition is left out.
	LockCircuits(ctx context.Context, ids []string, wait bool) (map[string]*rules.Circuit, error)
	// SaveCircuits writes circuits; one that is Idle may have no row.
	SaveCircuits(ctx context.Context, cs []*rules.Circuit) error
}

// TickTx keeps ticks. SaveTicks fails with ErrBadCall for a tick that has a row.
type TickTx interface {
	// SaveTicks writes what became of ticks. A tick of a tenant's definition has one row.
	SaveTicks(ctx context.Context, rows []rules.TickRow) error
	// DecidedTicks returns which ticks of each definition have a row, from its NextTick to an instant, both included;
	// the first of each, at most limit.
	DecidedTicks(ctx context.Context, ds []*rules.Definition, to lessor.Instant, limit int,
	) (map[string][]lessor.Instant, error)
	// ReplaceTicks writes ticks that have a row already.
	ReplaceTicks(ctx context.Context, rows []rules.TickRow) error
}

// AlertTx keeps alerts and the audit. SaveAlerts fails for a second open alert of one kind about one subject of a
// tenant: with ErrAgain if the store is shared, because another node may just have raised it, else with ErrBadCall.
type AlertTx interface {
	// SaveAlerts writes alerts, new or known by their id, but not who acknowledged them; AcknowledgeAlert notes that,
	// once.
	SaveAlerts(ctx context.Context, as []lessor.Alert) error
	AcknowledgeAlert(ctx context.Context, id lessor.AlertID, by string, at lessor.Instant) error
	// SaveAudit appends to the audit.
	SaveAudit(ctx context.Context, es []lessor.Audited) error
}

// SettingTx keeps what operators set. Its errors are faults.
type SettingTx interface {
	// SaveSetting stores a named value; nil removes it.
	SaveSetting(ctx context.Context, name string, value []byte) error
	// SavePolicy keeps what was set for a tenant or a class, under the gate.
	SavePolicy(ctx context.Context, p rules.Policy) error
	// SaveHandler keeps a handler's schema; a nil Schema removes it.
	SaveHandler(ctx context.Context, h lessor.Handler) error
	// SaveToken and DeleteToken keep access tokens; DeleteToken reports whether there was one.
	SaveToken(ctx context.Context, t Token) error
	DeleteToken(ctx context.Context, id lessor.TokenID) (bool, error)
}

// RetentionTx removes what is old, a page at a time, and returns how many rows went. Its errors are faults.
type RetentionTx interface {
	// Strip removes what is large about up to limit jobs that ended before the instant (payload, result, report,
	// journal, output) and frees their idempotency keys; their record stays. Each job is stripped once, those that
	// ended first going first. An instant before that of an earlier call says that the clock was set back: from then on
	// jobs that end after this instant are stripped in their turn, some of them again.
	Strip(ctx context.Context, before lessor.Instant, limit int) (int, error)
	// Purge removes up to limit jobs that ended before the instant, with everything about them.
	Purge(ctx context.Context, before lessor.Instant, limit int) (int, error)
	// PurgeRecords removes up to limit each of ticks, cleared alerts and audit entries from before the instant.
	PurgeRecords(ctx context.Context, before lessor.Instant, limit int) (int, error)
}
