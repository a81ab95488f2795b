package scheduler

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

// View is what can be read. Its errors are faults; ErrUnreachable and ErrWentBack are told apart.
type View interface {
	ClockView
	JobView
	LeaseView
	OutputView
	LaneView
	FoldView
	ChangeView
	DefinitionView
	CircuitView
	AlertView
	SettingView
}

// ClockView is the time of the transaction or snapshot. It cannot fail.
type ClockView interface {
	// Now is the store's clock, one value for the whole transaction or snapshot.
	Now() lessor.Instant
	// Serving is the floor under all leases, as of Now.
	Serving() rules.Serving
}

// JobView reads jobs. An unknown id is no error.
type JobView interface {
	// Standings returns what is known about jobs; unknown ids are left out.
	Standings(ctx context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Standing, error)
	// Specs returns what jobs are, without where they are and without BodyHash; unknown ids are left out. They are
	// shared and must not be changed.
	Specs(ctx context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Spec, error)
	// Reports returns what jobs last reported; those that never did are left out.
	Reports(ctx context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.Report, error)
	// Messages returns the messages to jobs that were not dropped, in their order, at most limit of each.
	Messages(ctx context.Context, ids []lessor.JobID, limit int) (map[lessor.JobID][]lessor.Message, error)
	// List returns standings that match q, newest job first, and whether more may follow the last one read.
	List(ctx context.Context, q ListQuery) (ListPage, error)
	// Histories returns what the records of jobs are made of; unknown ids are left out.
	Histories(ctx context.Context, ids []lessor.JobID) (map[lessor.JobID]*rules.History, error)
	// Entries returns entries of a job's journal in order, after the one with the number given; at most limit.
	Entries(ctx context.Context, id lessor.JobID, after, limit int) ([]rules.Entry, error)
	// OpenRuns returns the jobs of definitions that have not ended, oldest first, by the definition's id; at most limit
	// of each. Jobs of another tenant, which had the id before, are not the definition's.
	OpenRuns(ctx context.Context, definitions []*rules.Definition, limit int) (map[string][]OpenRun, error)
}

// LeaseView reads leases. An unknown id is no error.
type LeaseView interface {
	// LeaseList returns live leases that match q, newest first; LockList those that hold a lock key.
	LeaseList(ctx context.Context, q LeaseQuery) ([]ListedLease, error)
	LockList(ctx context.Context, q LockQuery) ([]ListedLease, error)
	// WorkspaceLeases returns the live leases that were requested with a workspace's id, in no order. Other leases cost
	// nothing.
	WorkspaceLeases(ctx context.Context, workspace string) ([]*rules.Held, error)
	// LeaseEnds returns how leases that are over ended; those not remembered are left out.
	LeaseEnds(ctx context.Context, ids []lessor.LeaseID) (map[lessor.LeaseID]LeaseEnd, error)
	// AttemptOf returns the attempt that was made under a lease that is over, and its tenant; nil if it is not
	// remembered.
	AttemptOf(ctx context.Context, id lessor.LeaseID) (*rules.Attempt, lessor.TenantID, error)
}

// OutputView reads what attempts printed.
type OutputView interface {
	// Output returns pieces of a stream in order, beginning with the last that starts at or before the offset. It stops
	// when those behind the first have limit bytes, and may stop earlier behind the second. end is where the last piece
	// of the stream ends, 0 if there is none.
	Output(ctx context.Context, at rules.OutputPlace, offset int64, limit int,
	) (pieces []rules.OutputPiece, end int64, err error)
	// OutputFences returns under which leases a job has output, at most limit, newest first. Their number is what it
	// costs.
	OutputFences(ctx context.Context, job lessor.JobID, limit int) ([]int64, error)
}

// LaneView reads the registry of lanes. An unknown number is no error.
type LaneView interface {
	// LanesByID returns the lanes with these numbers; unknown ones are left out.
	LanesByID(ctx context.Context, ids []rules.LaneID) (map[rules.LaneID]rules.Lane, error)
	// NoticedLanes returns the lanes that are under a notice, and which.
	NoticedLanes(ctx context.Context) (map[rules.LaneID]int64, error)
	// JobLanes calls fn with the lanes of up to limit jobs after one, in the order of their ids, and returns the last
	// job; nil if there are none.
	JobLanes(ctx context.Context, after lessor.JobID, limit int, fn func(rules.LaneID)) (*lessor.JobID, error)
}

// FoldView reads what the fold is built from. Each stops at fn's first error and returns it.
type FoldView interface {
	EachLane(ctx context.Context, fn func(rules.LaneID, rules.Lane) error) error
	EachQueued(ctx context.Context, fn func(rules.Turn) error) error
	EachLease(ctx context.Context, fn func(*rules.Held) error) error
	// EachBlock reads the definitions that are paused or disabled, or whose circuit is not closed.
	EachBlock(ctx context.Context, fn func(Block) error) error
	// NextDue is when the next waiting job is due; 0 if none waits.
	NextDue(ctx context.Context) (lessor.Instant, error)
	// EachMessaged reads the jobs that have messages, and the number of the last of each.
	EachMessaged(ctx context.Context, fn func(id lessor.JobID, last int64) error) error
	// CountWaiting counts the jobs that wait for an answer.
	CountWaiting(ctx context.Context) (int, error)
	// NextTick is the earliest DueAt of all definitions; 0 if there is none.
	NextTick(ctx context.Context) (lessor.Instant, error)
}

// ChangeView reads what other nodes published. Both are empty for a store that is not shared. A gap in the numbers of a
// stream means that changes were missed.
type ChangeView interface {
	// Position is how far the other nodes' streams of changes are; Changes returns what they published after a
	// position, each stream in its order. In a transaction Now is read again behind them.
	Position(ctx context.Context) (Position, error)
	Changes(ctx context.Context, after Position) ([]Change, error)
}

// DefinitionView reads definitions and their ticks. An unknown id is no error. A list that is in the order of a text
// compares bytes.
type DefinitionView interface {
	// Definitions returns the definitions with these ids; unknown ones are left out.
	Definitions(ctx context.Context, ids []string) (map[string]*rules.Definition, error)
	// DefinitionList returns definitions, newest first, after After.
	DefinitionList(ctx context.Context, q DefinitionQuery) ([]*rules.Definition, error)
	// TickList returns ticks of one definition and tenant, oldest first.
	TickList(ctx context.Context, q TickQuery) ([]rules.TickRow, error)
}

// CircuitView reads circuits.
type CircuitView interface {
	// Circuits returns circuits that are not Idle, the last that opened first, after After.
	Circuits(ctx context.Context, q CircuitQuery) ([]*rules.Circuit, error)
	// CircuitTicks returns ticks under an open circuit, the newest run first.
	CircuitTicks(ctx context.Context, q CircuitTickQuery) ([]rules.TickRow, error)
}

// AlertView reads alerts and the audit. An unknown id is no error.
type AlertView interface {
	// Alert returns one alert; nil if there is none.
	Alert(ctx context.Context, id lessor.AlertID) (*lessor.Alert, error)
	// OpenAlert returns the alert of this kind about this subject of a tenant that is not cleared; nil if there is
	// none.
	OpenAlert(ctx context.Context, kind lessor.AlertKind, subject string, tenant lessor.TenantID) (*lessor.Alert, error)
	// AlertList and AuditList return entries, newest first, after After in the order of ids.
	AlertList(ctx context.Context, q AlertQuery) ([]lessor.Alert, error)
	AuditList(ctx context.Context, q AuditQuery) ([]lessor.Audited, error)
}

// SettingView reads what operators set.
type SettingView interface {
	// Setting returns a named value, nil if it is not set.
	Setting(ctx context.Context, name string) ([]byte, error)
	// Policies returns what was set for tenants and classes, in the order of tenant and class.
	Policies(ctx context.Context) ([]rules.Policy, error)
	// Handlers returns all handlers in the order of their ids.
	Handlers(ctx context.Context) ([]lessor.Handler, error)
	// Tokens returns all access tokens, newest first.
	Tokens(ctx context.Context) ([]Token, error)
}
