package lessor

// RunStatus is the state of a run as the audit names it.
type RunStatus string

// The statuses of a run.
const (
	RunQueued      RunStatus = "QUEUED"
	RunClaimed     RunStatus = "CLAIMED"
	RunRunning     RunStatus = "RUNNING"
	RunSuccess     RunStatus = "SUCCESS"
	RunFailed      RunStatus = "FAILED"
	RunRetrying    RunStatus = "RETRYING"
	RunCircuitOpen RunStatus = "CIRCUIT_OPEN"
)

// RunStatuses lists every status in the order of a run's life.
func RunStatuses() []RunStatus {
	return []RunStatus{RunQueued, RunClaimed, RunRunning, RunRetrying, RunSuccess, RunFailed, RunCircuitOpen}
}

// Run is the audit record of a job, or of a tick under an open circuit. JobID is the definition's; a plain job's is its
// own id. Before its first claim only a definition's job has a run, without StartedAt; lists have it only under
// RunQueued.
type Run struct {
	RunID        JobID     `json:"runId"`
	JobID        string    `json:"jobId"`
	TenantID     TenantID  `json:"tenantId"`
	Status       RunStatus `json:"status"`
	StartedAt    Instant   `json:"startedAt"`
	EndedAt      Instant   `json:"endedAt,omitzero"`
	Attempts     int       `json:"attempts"`
	TraceID      string    `json:"traceId"`
	LastErrorRef string    `json:"lastErrorRef,omitempty"`
}

// RunFilter selects runs for a list, newest first. Zero fields do not filter.
type RunFilter struct {
	JobID  string
	Tenant *TenantID
	Status RunStatus
	Trace  string
	Limit  int
	Cursor string
}

// RunError is what went wrong in one attempt. Ref is the id of the attempt's lease, or the run's id if the job was
// refused when a worker was to get it.
type RunError struct {
	Ref     string  `json:"ref"`
	RunID   JobID   `json:"runId"`
	Attempt int     `json:"attempt"`
	Code    string  `json:"code"`
	Message string  `json:"message"`
	At      Instant `json:"at"`
}

// CircuitState says whether a definition's jobs may run.
type CircuitState string

// The states of a circuit.
const (
	CircuitClosed   CircuitState = "closed"
	CircuitOpen     CircuitState = "open"
	CircuitHalfOpen CircuitState = "halfOpen"
)

// Circuit is a definition's circuit breaker.
type Circuit struct {
	JobID    string       `json:"jobId"`
	State    CircuitState `json:"state"`
	Failures int          `json:"failures"`
	OpenedAt Instant      `json:"openedAt"`
	RetryAt  Instant      `json:"retryAt"`
}

// Lock is a lock key that a lease holds.
type Lock struct {
	LockKey     string   `json:"lockKey"`
	TenantID    TenantID `json:"tenantId"`
	LockedBy    string   `json:"lockedBy"`
	LockedUntil Instant  `json:"lockedUntil"`
	RunID       JobID    `json:"runId"`
}
