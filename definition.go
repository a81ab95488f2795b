package lessor

import "encoding/json"

// Schedule says when a definition's ticks are: a cron expression, or every so many seconds from an anchor.
type Schedule struct {
	Type    string `json:"type"` // ScheduleCron or ScheduleInterval
	Cron    string `json:"cron,omitempty"`
	Seconds int64  `json:"seconds,omitzero"`
}

// The types of a schedule.
const (
	ScheduleCron     = "cron"
	ScheduleInterval = "interval"
)

// Overlap says what a tick does while a job of an earlier tick has not ended.
type Overlap string

// The overlap policies; skip is the default.
const (
	OverlapSkip           Overlap = "skip"
	OverlapQueueOne       Overlap = "queueOne"
	OverlapAllow          Overlap = "allow"
	OverlapCancelPrevious Overlap = "cancelPrevious"
)

// CatchUp says which late ticks still fire.
type CatchUp string

// The catch-up policies; latest is the default.
const (
	CatchUpLatest CatchUp = "latest"
	CatchUpNone   CatchUp = "none"
	CatchUpAll    CatchUp = "all"
)

// CircuitBounds says how many failed attempts in a row open a definition's circuit, and for how long.
type CircuitBounds struct {
	Failures        int   `json:"failures"`
	CooldownSeconds int64 `json:"cooldownSeconds"`
}

// DefinitionBackoff is the Backoff of a definition, spelled in camel case.
type DefinitionBackoff struct {
	FirstMS int64 `json:"firstMs"`
	MaxMS   int64 `json:"maxMs"`
}

// Envelope is the body of a definition. JobID, TenantID, Schedule, HandlerID and LockKey are required; what else is nil
// takes its default. TenantID may be left out if the caller's token or the manifest names it. If both are set,
// TimeoutSeconds takes precedence over MaxRuntimeSeconds, which may be longer.
type Envelope struct {
	JobID                *string               `json:"jobId"`
	TenantID             *string               `json:"tenantId,omitempty"`
	Schedule             *ScheduleAsk          `json:"schedule"`
	HandlerID            *string               `json:"handlerId"`
	LockKey              *string               `json:"lockKey"`
	MaxAttempts          *int64                `json:"maxAttempts,omitempty"`
	TimeoutSeconds       *int64                `json:"timeoutSeconds,omitempty"`
	MaxRuntimeSeconds    *int64                `json:"maxRuntimeSeconds,omitempty"`
	FairnessClass        *string               `json:"fairnessClass,omitempty"`
	IsEnabled            *bool                 `json:"isEnabled,omitempty"`
	Payload              json.RawMessage       `json:"payload,omitempty"`
	Priority             *string               `json:"priority,omitempty"`
	RequestedUnits       *int64                `json:"requestedUnits,omitempty"`
	Timezone             *string               `json:"timezone,omitempty"`
	Overlap              *string               `json:"overlap,omitempty"`
	CatchUp              *string               `json:"catchUp,omitempty"`
	CatchUpWindowSeconds *int64                `json:"catchUpWindowSeconds,omitempty"`
	JitterSeconds        *int64                `json:"jitterSeconds,omitempty"`
	Circuit              *CircuitAsk           `json:"circuit,omitempty"`
	Backoff              *DefinitionBackoffAsk `json:"backoff,omitempty"`
	Paused               *bool                 `json:"paused,omitempty"` // nil = as it was

	// The rest of a Definition, so that one can be read, edited and sent back. ModuleID must be the definition's own;
	// the server ignores the others.
	ModuleID   *string `json:"moduleId,omitempty"`
	Version    *string `json:"version,omitempty"`
	NextTickAt *string `json:"nextTickAt,omitempty"`
	CreatedAt  *string `json:"createdAt,omitempty"`
	UpdatedAt  *string `json:"updatedAt,omitempty"`
}

// ScheduleAsk is the schedule of an Envelope.
type ScheduleAsk struct {
	Type    *string `json:"type"`
	Cron    *string `json:"cron,omitempty"`
	Seconds *int64  `json:"seconds,omitempty"`
}

// CircuitAsk is a definition's own circuit; a nil bound takes the server's.
type CircuitAsk struct {
	Failures        *int64 `json:"failures,omitempty"`
	CooldownSeconds *int64 `json:"cooldownSeconds,omitempty"`
}

// DefinitionBackoffAsk is a definition's own backoff; a nil bound takes the server's.
type DefinitionBackoffAsk struct {
	FirstMS *int64 `json:"firstMs,omitempty"`
	MaxMS   *int64 `json:"maxMs,omitempty"`
}

// Definition is a definition as callers see it: its envelope with defaults applied, and how it stands. TimeoutSeconds
// is null if only MaxRuntimeSeconds was set, which always says how long an attempt may run.
type Definition struct {
	JobID                string            `json:"jobId"`
	TenantID             TenantID          `json:"tenantId"`
	Schedule             Schedule          `json:"schedule"`
	HandlerID            string            `json:"handlerId"`
	LockKey              string            `json:"lockKey"`
	MaxAttempts          int               `json:"maxAttempts"`
	TimeoutSeconds       *int64            `json:"timeoutSeconds"`
	MaxRuntimeSeconds    int64             `json:"maxRuntimeSeconds"`
	FairnessClass        string            `json:"fairnessClass"`
	IsEnabled            bool              `json:"isEnabled"`
	Payload              json.RawMessage   `json:"payload"`
	Priority             Priority          `json:"priority"`
	RequestedUnits       int               `json:"requestedUnits"`
	Timezone             string            `json:"timezone"`
	Overlap              Overlap           `json:"overlap"`
	CatchUp              CatchUp           `json:"catchUp"`
	CatchUpWindowSeconds int64             `json:"catchUpWindowSeconds"`
	JitterSeconds        int64             `json:"jitterSeconds"`
	Circuit              CircuitBounds     `json:"circuit"`
	Backoff              DefinitionBackoff `json:"backoff"`
	ModuleID             *string           `json:"moduleId"`
	Version              *string           `json:"version"` // of the manifest that stored it last
	Paused               bool              `json:"paused"`
	NextTickAt           Instant           `json:"nextTickAt"`
	CreatedAt            Instant           `json:"createdAt"`
	UpdatedAt            Instant           `json:"updatedAt"`
	ETag                 string            `json:"-"` // set by the client: the version, for client.WithIfMatch
}

// DefinitionFilter selects definitions for a list. Zero fields do not filter.
type DefinitionFilter struct {
	Tenant *TenantID
	Module string
	Limit  int
	Cursor string
}

// Manifest is a module's definitions for one tenant, stored together or not at all.
type Manifest struct {
	ModuleID *string    `json:"moduleId"`
	Version  *string    `json:"version,omitempty"`
	TenantID *string    `json:"tenantId,omitempty"`
	Jobs     []Envelope `json:"jobs"`
	Prune    *bool      `json:"prune,omitempty"`
	DryRun   *bool      `json:"dryRun,omitempty"`
}

// Applied lists what a manifest did, or under DryRun would do, by jobId.
type Applied struct {
	Created   []string `json:"created"`
	Changed   []string `json:"changed"`
	Unchanged []string `json:"unchanged"`
	Removed   []string `json:"removed"`
	DryRun    bool     `json:"dryRun"`
	// Definitions shows each changed definition as it would be stored, with the server's defaults. Only a dry run has
	// it.
	Definitions []Definition `json:"definitions,omitempty"`
}

// TickOutcome says what became of a tick.
type TickOutcome string

// The outcomes of a tick.
const (
	TickFired       TickOutcome = "fired"
	TickCaughtUp    TickOutcome = "caughtUp"
	TickSkipped     TickOutcome = "skipped"
	TickCircuitOpen TickOutcome = "circuitOpen"
	TickMissed      TickOutcome = "missed"
)

// Tick is what became of one instant of a schedule. A missed one stands for all of From..To, which lay before the
// catch-up window.
type Tick struct {
	TickAt  Instant     `json:"tickAt"`
	Outcome TickOutcome `json:"outcome"`
	Reason  *string     `json:"reason"`
	RunID   *JobID      `json:"runId"`
	From    Instant     `json:"from"`
	To      Instant     `json:"to"`
	Count   int64       `json:"count"`
}

// TickFilter selects ticks From..To for a list, oldest first. Zero fields do not filter.
type TickFilter struct {
	From, To Instant
	Limit    int
	Cursor   string
}
