package lessor

import "encoding/json"

// AlertKind is what an alert is about.
type AlertKind string

// The kinds of alerts.
const (
	AlertMassExpiry  AlertKind = "mass_expiry"
	AlertCircuitOpen AlertKind = "circuit_open"
	AlertNoWorker    AlertKind = "no_worker"
	AlertStale       AlertKind = "stale"
	AlertDead        AlertKind = "dead"
	AlertHung        AlertKind = "hung"
	AlertMissedTicks AlertKind = "missed_ticks"
	AlertJobFailed   AlertKind = "job_failed"
	// AlertStoreWentBack: a standby was promoted that had not received everything, or an older copy restored.
	AlertStoreWentBack AlertKind = "store_went_back"
)

// Alert is a condition that a person should know. It is raised once, and cleared when its cause is gone.
type Alert struct {
	ID             AlertID   `json:"id"`
	Kind           AlertKind `json:"kind"`
	Subject        string    `json:"subject"`
	TenantID       TenantID  `json:"tenantId"`
	Message        string    `json:"message"`
	Count          int64     `json:"count"` // of what it is about: jobs that failed, ticks that were missed; else 1
	RaisedAt       Instant   `json:"raisedAt"`
	ClearedAt      Instant   `json:"clearedAt"`
	AcknowledgedAt Instant   `json:"acknowledgedAt"`
	AcknowledgedBy *string   `json:"acknowledgedBy"`
}

// AlertFilter selects alerts for a list, newest first. Open leaves out those that are cleared.
type AlertFilter struct {
	Open   bool
	Limit  int
	Cursor string
}

// Audited is one entry of the audit: the actor, the change, and the object before and after. Before and After are null
// where there was or is none.
type Audited struct {
	ID      AuditID         `json:"id"`
	At      Instant         `json:"at"`
	Actor   string          `json:"actor"`
	Action  string          `json:"action"`
	Object  string          `json:"object"`
	Before  json.RawMessage `json:"before"`
	After   json.RawMessage `json:"after"`
	TraceID string          `json:"traceId"`
}

// AuditFilter selects audit entries for a list, newest first. Zero fields do not filter.
type AuditFilter struct {
	Actor  string
	Object string
	Limit  int
	Cursor string
}
