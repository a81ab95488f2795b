package lessor

// Event is one entry of a job's record: a change of state, or something that was asked of it. Entries are never
// altered; replaying them gives the job's state.
type Event struct {
	Seq     int      `json:"seq"`
	At      Instant  `json:"at"`
	From    *State   `json:"from"`
	To      State    `json:"to"`
	Actor   string   `json:"actor"`
	Reason  string   `json:"reason"`
	LeaseID *LeaseID `json:"lease_id"`
	Fence   *int64   `json:"fence"`
	Attempt int      `json:"attempt"`
	TraceID string   `json:"trace_id"`
}

// StreamEvent is an Event as the stream of all records shows it, with the job it belongs to.
type StreamEvent struct {
	Event
	JobID    JobID    `json:"job_id"`
	TenantID TenantID `json:"tenant_id"`
}
