package lessor

import "encoding/json"

// Change is what a request does to one setting. The zero Change leaves the setting as it is.
type Change[T any] struct {
	To    *T   // the new value
	Reset bool // restores the default; To is nil then
}

// SetTo is a change to a new value.
func SetTo[T any](v T) Change[T] { return Change[T]{To: &v} }

// MarshalJSON encodes a reset as null. A field with omitzero is left out if its Change is zero.
func (c Change[T]) MarshalJSON() ([]byte, error) { return json.Marshal(c.To) }

// BusySource says where the busy rating came from.
type BusySource string

// The sources of a busy rating.
const (
	BusyHost       BusySource = "host"
	BusySet        BusySource = "set"
	BusyFailClosed BusySource = "fail_closed"
)

// BusyInputs are the measurements behind a rating that was sampled from the host.
type BusyInputs struct {
	CPUPercent    float64 `json:"cpu_percent"`
	MemoryPercent float64 `json:"memory_percent"`
	P95MS         float64 `json:"p95_ms"`
	ErrorShare    float64 `json:"error_share"`
	InFlight      int     `json:"in_flight"`
	Requests      int     `json:"requests"`
	SampledAt     Instant `json:"sampled_at"`
}

// Capacity is what the store may lease now. The expiries say until when the total and the busy rating hold that an
// operator set; they are null for what is configured or set without an end.
type Capacity struct {
	TotalUnits          int        `json:"total_units"`
	TotalUnitsExpiresAt Instant    `json:"total_units_expires_at"`
	ReserveUnits        int        `json:"reserve_units"`
	Busy                int        `json:"busy"`
	BusySource          BusySource `json:"busy_source"`
	BusyExpiresAt       Instant    `json:"busy_expires_at"`
	Inputs              BusyInputs `json:"inputs"`
	UsableUnits         int        `json:"usable_units"`
	LeasedUnits         int        `json:"leased_units"`
	AvailableUnits      int        `json:"available_units"`
}

// CapacityAsk is the body of a change of capacity. ExpiresInS is how long the values that it sets last; nil means
// until they are reset.
type CapacityAsk struct {
	TotalUnits Change[int64] `json:"total_units,omitzero"`
	Busy       Change[int64] `json:"busy,omitzero"`
	ExpiresInS *int64        `json:"expires_in_s,omitempty"`
}

// Status is the state of the whole scheduler on one screen.
type Status struct {
	Capacity
	QueueDepth   QueueDepth `json:"queue_depth"`
	ActiveLeases int        `json:"active_leases"`
	Waiting      int        `json:"waiting"` // jobs that wait for an answer
	BrakeUntil   Instant    `json:"brake_until"`
	Draining     bool       `json:"draining"`
}

// QueueDepth counts the jobs that are queued and due, by priority.
type QueueDepth struct {
	High       int `json:"high"`
	Normal     int `json:"normal"`
	Low        int `json:"low"`
	Background int `json:"background"`
}

// Worker is a worker that asked for work or sent a heartbeat in the last five minutes.
type Worker struct {
	WorkerID   string   `json:"worker_id"`
	LastSeenAt Instant  `json:"last_seen_at"`
	Leases     int      `json:"leases"`
	Units      int      `json:"units"`
	Types      []string `json:"types"`
	Agent      string   `json:"agent"`
}
