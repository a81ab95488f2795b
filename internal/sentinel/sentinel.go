package sentinel

import (
	"encoding/json"
	"slices"

	"lessor"
)

// Status is what a running command says of itself.
type Status string

// The statuses of a running command. Running is the first.
const (
	Running    Status = "running"
	Waiting    Status = "waiting"
	Processing Status = "processing"
)

// Statuses lists every status.
func Statuses() []Status { return []Status{Running, Waiting, Processing} }

// Sentinel is the pulse of a running command. A zero Seq, Fence or LastProgress was not given: other writers than our
// shim need not know them.
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
	// Fence is that of the lease the command runs under.
	Fence int64 `json:"fence,omitempty"`
	// LastProgress is when the work itself last showed that it moves.
	LastProgress lessor.Instant `json:"lastProgress"`
}

// Limits of a sentinel's texts. A path is as long as the system allows.
const (
	maxPath    = 4096
	maxSession = 200
	maxEngine  = 120
)

// check says what is wrong with the sentinel of job id, nil if nothing is.
func (s *Sentinel) check(id lessor.JobID) error {
	switch {
	case s.JobID.IsZero():
		return invalid(Malformed, "jobId is missing")
	case s.JobID != id:
		return invalid(OtherJob, "it is of job %s", s.JobID)
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

func parseSentinel(id lessor.JobID, data []byte) (Sentinel, error) {
	var s Sentinel
	if err := decode(data, &s); err != nil {
		return Sentinel{}, err
	}
	if err := s.check(id); err != nil {
		return Sentinel{}, err
	}
	return s, nil
}

// decode reads a file. An id that is none is another reason to refuse it than a file that was cut off.
func decode(data []byte, into any) error {
	err := json.Unmarshal(data, into)
	if err == nil {
		return nil
	}
	var head struct {
		JobID *string `json:"jobId"`
	}
	if json.Unmarshal(data, &head) == nil && head.JobID != nil {
		if _, bad := lessor.ParseUUID(*head.JobID); bad != nil {
			return invalid(IllFormedID, "jobId %.40q is no job's id", *head.JobID)
		}
	}
	return invalid(Malformed, "%v", err)
}
