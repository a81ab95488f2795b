// Package sentinel reads and writes a workspace: one folder per job, with the files that show that a command is alive
// and how it ended. The shim writes them and the server's monitor reads them; only this package knows their names and
// formats.
//
//	{workspace}/.lessor-workspace             the workspace's id, made once
//	{workspace}/jobs/{jobId}/.sentinel.json   the pulse of a running command, gone when it has ended
//	{workspace}/jobs/{jobId}/.exit.json       how it ended, enough to complete the job when nobody saw it end
//	{workspace}/jobs/{jobId}/.lock            held with flock for a shim's life: one attempt at a time in a folder
//	{workspace}/jobs/{jobId}/.stop            attempts with a lower fence than this must end
//
// What it promises:
//   - A reader sees a whole file or none: a file is written under a temporary name, synced and renamed
//     (TestReaderNeverSeesHalfAFile).
//   - A file that is not a plain sentinel is reported with a Reason, and never followed or obeyed: links, pipes,
//     devices, files that are too large, half-written or another job's (TestHostileSentinelsAreRefused). No file
//     outside the workspace is opened, whatever links are in it (TestLinksLeadNowhere).
//   - No process id is stored, read or compared (TestNoProcessIDs).
//   - A time in a file is kept as data. How old it is, and what follows, is the monitor's to judge.
//
// The package decides nothing, starts no process and reads no clock.
package sentinel

import (
	"slices"

	"lessor"
)

// Status is what a running command reports about itself.
type Status string

// The statuses of a running command. Running is the first.
const (
	Running    Status = "running"
	Waiting    Status = "waiting"
	Processing Status = "processing"
)

// Statuses lists every status.
func Statuses() []Status { return []Status{Running, Waiting, Processing} }

// Sentinel is the pulse of a running command. A writer other than our shim may leave Seq, Fence and LastProgress out;
// they are then zero.
type Sentinel struct {
	JobID         lessor.JobID   `json:"jobId"`
	Status        Status         `json:"status"`
	LastHeartbeat lessor.Instant `json:"lastHeartbeat"`
	WorkspacePath string         `json:"workspacePath"`
	SessionID     string         `json:"sessionId"`
	AgentEngine   string         `json:"agentEngine"`
	StartedAt     lessor.Instant `json:"startedAt"`
	// Seq rises with every write, so that a reader can tell a new pulse from an old one without trusting a clock.
	Seq int64 `json:"seq,omitempty"`
	// Fence is the fence of the lease under which the command runs.
	Fence int64 `json:"fence,omitempty"`
	// LastProgress is when the work itself last made progress.
	LastProgress lessor.Instant `json:"lastProgress"`
}

// Limits of a sentinel's texts. The system limits a path to maxPath.
const (
	maxPath    = 4096
	maxSession = 200
	maxEngine  = 120
)

// check returns an error if s is no valid sentinel of job id.
func (s *Sentinel) check(id lessor.JobID) error {
	switch {
	case s.JobID.IsZero():
		return invalid(Malformed, "jobId is missing")
	case s.JobID != id:
		return invalid(OtherJob, "it belongs to job %s", s.JobID)
	case !slices.Contains(Statuses(), s.Status):
		return invalid(Malformed, "status %.20q is unknown", s.Status)
	case s.LastHeartbeat.IsZero():
		return invalid(Malformed, "lastHeartbeat is missing")
	case isFar(s.LastHeartbeat) || isFar(s.StartedAt) || isFar(s.LastProgress):
		return invalid(Malformed, "a time lies outside the years 1970 to 2199")
	case s.Seq < 0 || s.Fence < 0:
		return invalid(Malformed, "seq and fence are not negative")
	case s.SessionID != "" && !isSessionID(s.SessionID):
		return invalid(IllFormedID, "sessionId is not a name of 1 to %d characters", maxSession)
	case len(s.WorkspacePath) > maxPath || len(s.AgentEngine) > maxEngine:
		return invalid(Malformed, "workspacePath or agentEngine is too long")
	}
	return nil
}

// isFar reports whether no clock can have written a time. How old such a pulse is could not be measured.
func isFar(t lessor.Instant) bool {
	const year2200 = 7_258_118_400_000
	return t < 0 || t >= year2200
}
