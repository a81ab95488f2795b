package lessor

// HeartbeatStatus is the verdict on the silence of a sentinel.
type HeartbeatStatus string

// The verdicts. Unknown is a job without a sentinel.
const (
	HeartbeatFresh   HeartbeatStatus = "fresh"
	HeartbeatStale   HeartbeatStatus = "stale"
	HeartbeatDead    HeartbeatStatus = "dead"
	HeartbeatUnknown HeartbeatStatus = "unknown"
)

// JobHeartbeats is how the commands under a node's workspace are.
type JobHeartbeats struct {
	Jobs    []JobHeartbeat   `json:"jobs"`
	Summary HeartbeatSummary `json:"summary"`
	Node    string           `json:"node"`
}

// JobHeartbeat is how one command is. LastHeartbeat is null for a job whose sentinel is missing; AgeSeconds counts from
// the grant then.
type JobHeartbeat struct {
	JobID         JobID           `json:"jobId"`
	LastHeartbeat Instant         `json:"lastHeartbeat"`
	AgeSeconds    int64           `json:"ageSeconds"`
	Status        HeartbeatStatus `json:"status"`
	AgentEngine   *string         `json:"agentEngine"`
}

// HeartbeatSummary counts verdicts. Invalid sentinels are not in Total.
type HeartbeatSummary struct {
	Total   int `json:"total"`
	Fresh   int `json:"fresh"`
	Stale   int `json:"stale"`
	Dead    int `json:"dead"`
	Invalid int `json:"invalid"`
}

// StaleJobs lists the commands that have been silent for too long to be healthy, and not long enough to be dead.
type StaleJobs struct {
	StaleJobs []StaleJob `json:"staleJobs"`
	Node      string     `json:"node"`
}

// StaleJob is one of them.
type StaleJob struct {
	JobID             JobID   `json:"jobId"`
	LastHeartbeat     Instant `json:"lastHeartbeat"`
	AgeMinutes        float64 `json:"ageMinutes"`
	WorkspacePath     string  `json:"workspacePath"`
	RecommendedAction string  `json:"recommendedAction"`
}

// JobHealth is all that a node's workspace says about one job.
type JobHealth struct {
	JobID              JobID           `json:"jobId"`
	HeartbeatStatus    HeartbeatStatus `json:"heartbeatStatus"`
	LastHeartbeat      Instant         `json:"lastHeartbeat"`
	AgeSeconds         *int64          `json:"ageSeconds"`
	SentinelFileExists bool            `json:"sentinelFileExists"`
	WorkspaceExists    bool            `json:"workspaceExists"`
	SessionDataExists  bool            `json:"sessionDataExists"`
	Node               string          `json:"node"`
}

// RecoveryState is how far a node is with what it found at its start.
type RecoveryState string

// The states of recovery. Idle is a start that found nothing to wait for.
const (
	RecoveryIdle      RecoveryState = "idle"
	RecoveryWatching  RecoveryState = "watching"
	RecoveryCompleted RecoveryState = "completed"
)

// RecoveredStatus is what became of one job.
type RecoveredStatus string

// What becomes of a job. Running was never in doubt, or is a command that pulses and whose job the store does not know;
// Failed is a command whose lease is over, whatever its sentinel says.
const (
	RecoveredWatching   RecoveredStatus = "watching"
	RecoveredReattached RecoveredStatus = "reattached"
	RecoveredDead       RecoveredStatus = "dead"
	RecoveredRunning    RecoveredStatus = "running"
	RecoveredFailed     RecoveredStatus = "failed"
)

// RecoveryStatus is what a node found at its start and since, and what became of it.
type RecoveryStatus struct {
	Recovery RecoveryProgress `json:"recovery"`
	Jobs     []RecoveredJob   `json:"jobs"`
	Summary  RecoverySummary  `json:"summary"`
	Node     string           `json:"node"`
}

// RecoveryProgress is how far a node is with what it found at its start.
type RecoveryProgress struct {
	State       RecoveryState `json:"state"`
	StartedAt   Instant       `json:"startedAt"`
	CompletedAt Instant       `json:"completedAt"`
}

// RecoveredJob is one job that recovery checked.
type RecoveredJob struct {
	JobID         JobID           `json:"jobId"`
	Status        RecoveredStatus `json:"status"`
	LastHeartbeat Instant         `json:"lastHeartbeat"`
	AgeSeconds    *int64          `json:"ageSeconds"`
	WatchDeadline Instant         `json:"watchDeadline"`
}

// RecoverySummary counts jobs by what became of them.
type RecoverySummary struct {
	Total      int `json:"total"`
	Watching   int `json:"watching"`
	Reattached int `json:"reattached"`
	Dead       int `json:"dead"`
}

// Sentinels lists every sentinel file under a node's workspace.
type Sentinels struct {
	Sentinels []SentinelShown `json:"sentinels"`
	Node      string          `json:"node"`
}

// SentinelShown is one sentinel file. An invalid one has only its path and its error; its JobID is the name of its
// folder, which may be no id.
type SentinelShown struct {
	JobID         string           `json:"jobId"`
	WorkspacePath string           `json:"workspacePath"`
	LastHeartbeat Instant          `json:"lastHeartbeat"`
	AgeSeconds    *int64           `json:"ageSeconds"`
	Status        *HeartbeatStatus `json:"status"`
	SessionID     *string          `json:"sessionId"`
	AgentEngine   *string          `json:"agentEngine"`
	StartedAt     Instant          `json:"startedAt"`
	Known         bool             `json:"known"` // the store knows the job
	Hung          bool             `json:"hung"`  // it pulses, and its lease expired for lack of heartbeats
	Valid         bool             `json:"valid"`
	Error         *string          `json:"error"`
}

// RecoveryMetrics counts what a node recovered since its start. SuccessRate and AverageReattachSeconds are null while
// there is nothing to compute them from.
type RecoveryMetrics struct {
	TotalJobs              int      `json:"totalJobs"`
	ReattachedCount        int      `json:"reattachedCount"`
	FailedCount            int      `json:"failedCount"`
	SuccessRate            *float64 `json:"successRate"`
	AverageReattachSeconds *float64 `json:"averageReattachSeconds"`
	LastScan               LastScan `json:"lastScan"`
	Node                   string   `json:"node"`
}

// LastScan is a node's last scan of its whole workspace.
type LastScan struct {
	At         Instant `json:"at"`
	DurationMS int64   `json:"durationMs"`
	Sentinels  int     `json:"sentinels"`
}

// FailedJobs lists the jobs whose command was found dead.
type FailedJobs struct {
	FailedJobs []FailedJob `json:"failedJobs"`
	Node       string      `json:"node"`
}

// FailedJob is one of them. Resumable is one that failed for good, or whose retry can be replaced.
type FailedJob struct {
	JobID         JobID   `json:"jobId"`
	Reason        string  `json:"reason"`
	FailedAt      Instant `json:"failedAt"`
	LastHeartbeat Instant `json:"lastHeartbeat"`
	Resumable     bool    `json:"resumable"`
}

// ResumeAsk asks for a new job that goes on where one that failed for good, or whose command was found dead, ended.
// FromCheckpoint is true unless given.
type ResumeAsk struct {
	JobID          *string `json:"jobId"`
	FromCheckpoint *bool   `json:"fromCheckpoint,omitempty"`
}

// Resumed names the new job. SessionFiles counts the session files that were copied into its folder.
type Resumed struct {
	JobID        JobID  `json:"jobId"`
	NewJobID     JobID  `json:"newJobId"`
	Status       State  `json:"status"`
	SessionFiles int    `json:"sessionFiles"`
	Node         string `json:"node"`
}

// CleanupState is how far the removal of a folder is.
type CleanupState string

// The states of a cleanup. A dropped one was not needed any more, a failed one is tried again: the Reason says why.
const (
	CleanupScheduled CleanupState = "scheduled"
	CleanupDone      CleanupState = "done"
	CleanupDropped   CleanupState = "dropped"
	CleanupFailed    CleanupState = "failed"
)

// Cleanups lists folders that are removed because their command is dead, newest first.
type Cleanups struct {
	Cleanups []Cleanup `json:"cleanups"`
	Node     string    `json:"node"`
}

// Cleanup is the removal of one folder.
type Cleanup struct {
	JobID         JobID        `json:"jobId"`
	WorkspacePath string       `json:"workspacePath"`
	Status        CleanupState `json:"status"`
	ScheduledAt   Instant      `json:"scheduledAt"`
	DueAt         Instant      `json:"dueAt"`
	EndedAt       Instant      `json:"endedAt"`
	Reason        *string      `json:"reason"`
}

// Scanned is the answer to a requested scan.
type Scanned struct {
	LastScan
	Node string `json:"node"`
}
