package scheduler

import (
	"context"

	"lessor"
	"lessor/internal/fold"
	"lessor/internal/rules"
)

// KernelTx is the part of a write transaction that is about definitions and what belongs to them. Definition rows are locked
// before all others, circuit rows after leases and waiting jobs and before the gate.
type KernelTx interface {
	// LockDefinitions returns the definitions with these ids, locked for change in the order of ids; unknown ones are left out.
	LockDefinitions(ctx context.Context, ids []string) (map[string]*rules.Definition, error)
	// DueDefinitions locks and returns definitions whose DueAt has come and that no other node has locked, the earliest first.
	DueDefinitions(ctx context.Context, now lessor.Instant, limit int) ([]*rules.Definition, error)
	// SaveDefinitions writes definitions whole, new or known. DeleteDefinitions removes them and their circuits; jobs and ticks stay.
	SaveDefinitions(ctx context.Context, ds []*rules.Definition) error
	DeleteDefinitions(ctx context.Context, ids []string) error
	// SaveTicks writes what became of ticks. A tick of a tenant's definition has one row: another is an error that is no refusal.
	SaveTicks(ctx context.Context, rows []rules.TickRow) error
	// DecidedTicks returns which ticks of each definition have a row, from its NextTick to an instant, both included; the first of each, at most limit.
	DecidedTicks(ctx context.Context, ds []*rules.Definition, to lessor.Instant, limit int) (map[string][]lessor.Instant, error)
	// ReplaceTicks writes ticks that have a row already.
	ReplaceTicks(ctx context.Context, rows []rules.TickRow) error

	// LockCircuits returns the circuits of these definitions, locked for change. A definition without a row has a closed circuit that
	// never failed; it is returned too, and locked as well, so that two nodes cannot both count the first failure. Without wait
	// those that another node has locked are left out. The tenant is the definition's; an id that names no definition is left out.
	LockCircuits(ctx context.Context, ids []string, wait bool) (map[string]*rules.Circuit, error)
	// SaveCircuits writes circuits; one that is Idle may have no row.
	SaveCircuits(ctx context.Context, cs []*rules.Circuit) error

	// SavePolicy keeps what was set for a tenant or a class, under the gate.
	SavePolicy(ctx context.Context, p rules.Policy) error
	// SaveHandler keeps a handler's schema; a nil Schema removes it.
	SaveHandler(ctx context.Context, h lessor.Handler) error
	// SaveAlerts writes alerts, new or known by their id, but not who acknowledged them; AcknowledgeAlert notes that, once.
	SaveAlerts(ctx context.Context, as []lessor.Alert) error
	AcknowledgeAlert(ctx context.Context, id lessor.AlertID, by string, at lessor.Instant) error
	// SaveAudit appends to the audit.
	SaveAudit(ctx context.Context, es []lessor.Audited) error
	// PurgeKernel removes up to limit each of ticks, cleared alerts and audit entries from before the instant, and returns how many rows went.
	PurgeKernel(ctx context.Context, before lessor.Instant, limit int) (int, error)
}

// KernelView is what can be read about definitions and what belongs to them.
type KernelView interface {
	// Definitions returns the definitions with these ids; unknown ones are left out.
	Definitions(ctx context.Context, ids []string) (map[string]*rules.Definition, error)
	// DefinitionList returns definitions, newest first, from after After on. Names are in the order of their bytes, here and
	// wherever a list is in the order of a text.
	DefinitionList(ctx context.Context, q DefinitionQuery) ([]*rules.Definition, error)
	// NextTick is the earliest DueAt of all definitions; 0 if none is due ever.
	NextTick(ctx context.Context) (lessor.Instant, error)
	// OpenRuns returns the jobs of definitions that have not ended, oldest first, by the definition's id; at most limit of each. Jobs
	// of another tenant, which had the id before, are not the definition's.
	OpenRuns(ctx context.Context, definitions []*rules.Definition, limit int) (map[string][]OpenRun, error)
	// TickList returns ticks of one definition and tenant, oldest first.
	TickList(ctx context.Context, q TickQuery) ([]rules.TickRow, error)
	// CircuitTicks returns ticks under an open circuit, the newest run first.
	CircuitTicks(ctx context.Context, q CircuitTickQuery) ([]rules.TickRow, error)

	// EachBlock reads all definitions whose jobs may not run as others do: paused, disabled, or with a circuit that is not closed.
	EachBlock(ctx context.Context, fn func(Block) error) error
	// Circuits returns circuits that are not Idle, the last that opened first, from after After on.
	Circuits(ctx context.Context, q CircuitQuery) ([]*rules.Circuit, error)
	// Policies returns all that was set for tenants and classes, in the order of tenant and class.
	Policies(ctx context.Context) ([]rules.Policy, error)
	// Handlers returns all handlers in the order of their ids.
	Handlers(ctx context.Context) ([]lessor.Handler, error)
	// Alert returns one alert; nil if there is none.
	Alert(ctx context.Context, id lessor.AlertID) (*lessor.Alert, error)
	// OpenAlert returns the alert of this kind about this subject of a tenant that is not cleared; nil if there is none.
	OpenAlert(ctx context.Context, kind lessor.AlertKind, subject string, tenant lessor.TenantID) (*lessor.Alert, error)
	// AlertList and AuditList return entries, newest first, from after After (in the order of ids) on.
	AlertList(ctx context.Context, q AlertQuery) ([]lessor.Alert, error)
	AuditList(ctx context.Context, q AuditQuery) ([]lessor.Audited, error)
	// AttemptOf returns the attempt that was made under a lease that is over, and whose it is; nil if it is not remembered.
	AttemptOf(ctx context.Context, id lessor.LeaseID) (*rules.Attempt, lessor.TenantID, error)
	// LockList returns live leases that hold a lock key, newest first, from after After on.
	LockList(ctx context.Context, q LockQuery) ([]ListedLease, error)
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
