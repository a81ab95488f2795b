package lessortest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"lessor"
)

const (
	// patience is how long the methods wait, in the time of the test. A test that needs longer calls Advance first.
	patience = time.Hour
	// The checks become rarer the longer a method waits, but do not miss a state: an expired job is queued again
	// after a second.
	soonest = 10 * time.Millisecond
	latest  = 500 * time.Millisecond
)

// Advance lets d pass.
func (s *Server) Advance(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

// KillWorker cuts every current and future connection of a worker, as if its process had died. Its leases expire.
func (s *Server) KillWorker(id string) { s.wire.kill(id) }

// Expire makes a lease expire although its worker sends heartbeats, by dropping them, and returns when it has
// expired. The worker learns of it at its next heartbeat. What it appends to the journal meanwhile is not answered.
func (s *Server) Expire(id lessor.LeaseID) {
	s.t.Helper()
	job := s.jobOf(id)
	s.wire.dropHeartbeats(id, true)
	defer s.wire.dropHeartbeats(id, false)
	s.until(job, "to lose the lease "+id.String(),
		func(j lessor.Job) bool { return j.LeaseID == nil || *j.LeaseID != id })
}

func (s *Server) jobOf(id lessor.LeaseID) lessor.JobID {
	s.t.Helper()
	for l, err := range s.client.AllLeases(context.Background(), "") {
		if err != nil {
			s.t.Fatalf("lessortest: list leases: %v", err)
		}
		if l.ID == id {
			return l.JobID
		}
	}
	s.t.Fatalf("lessortest: there is no live lease %s", id)
	return lessor.JobID{}
}

// Job returns a job as it is now.
func (s *Server) Job(id lessor.JobID) lessor.Job {
	s.t.Helper()
	j, err := s.client.Job(context.Background(), id)
	if err != nil {
		s.t.Fatalf("lessortest: job %s: %v", id, err)
	}
	return j
}

// Journal returns the journal of a job.
func (s *Server) Journal(id lessor.JobID) (entries []lessor.JournalEntry) {
	s.t.Helper()
	for e, err := range s.client.AllJournal(context.Background(), id) {
		if err != nil {
			s.t.Fatalf("lessortest: journal of job %s: %v", id, err)
		}
		entries = append(entries, e)
	}
	return entries
}

// Answer answers the question of a job that waits.
func (s *Server) Answer(id lessor.JobID, answer string) {
	s.t.Helper()
	j := s.WaitFor(id, lessor.Waiting)
	if _, err := s.client.Answer(context.Background(), id, j.Question.ID, answer); err != nil {
		s.t.Fatalf("lessortest: answer %q of job %s: %v", j.Question.Text, id, err)
	}
}

// Message sends a message to a job.
func (s *Server) Message(id lessor.JobID, text string) {
	s.t.Helper()
	if _, err := s.client.Message(context.Background(), id, text); err != nil {
		s.t.Fatalf("lessortest: message to job %s: %v", id, err)
	}
}

// Output returns what the last attempt of a job printed to its stdout, as far as the server keeps it.
func (s *Server) Output(id lessor.JobID) string {
	s.t.Helper()
	var all []byte
	for out, err := range s.client.AllOutput(context.Background(), id, lessor.OutputQuery{}, false) {
		if err != nil {
			s.t.Fatalf("lessortest: output of job %s: %v", id, err)
		}
		all = append(all, out.Data...)
	}
	return string(all)
}

// AssertState fails the test unless the job is in the given state now.
func (s *Server) AssertState(id lessor.JobID, want lessor.State) {
	s.t.Helper()
	if j := s.Job(id); j.State != want {
		s.t.Fatalf("%s is %s, want %s%s", name(j), j.State, want, s.record(j))
	}
}

// WaitFor waits, for at most an hour, until a job is in one of the states, and returns it.
func (s *Server) WaitFor(id lessor.JobID, want ...lessor.State) lessor.Job {
	s.t.Helper()
	names := make([]string, len(want))
	for i, state := range want {
		names[i] = string(state)
	}
	return s.until(id, "to be "+strings.Join(names, " or "),
		func(j lessor.Job) bool { return slices.Contains(want, j.State) })
}

// WaitForEnd waits, for at most an hour, until a job is in a state that it will not leave, and returns it.
func (s *Server) WaitForEnd(id lessor.JobID) lessor.Job {
	s.t.Helper()
	return s.until(id, "to end", func(j lessor.Job) bool { return j.Final() })
}

// WaitForLease waits, for at most an hour, until a worker holds a job, and returns the lease.
func (s *Server) WaitForLease(id lessor.JobID) lessor.Lease {
	s.t.Helper()
	j := s.until(id, "to be leased", func(j lessor.Job) bool { return j.LeaseID != nil })
	for l, err := range s.client.AllLeases(context.Background(), "") {
		if err != nil {
			s.t.Fatalf("lessortest: list leases: %v", err)
		}
		if l.ID == *j.LeaseID {
			return l
		}
	}
	s.t.Fatalf("%s lost its lease at once%s", name(j), s.record(j))
	return lessor.Lease{}
}

// until waits until is returns true for a job.
func (s *Server) until(id lessor.JobID, want string, is func(lessor.Job) bool) lessor.Job {
	s.t.Helper()
	start := time.Now()
	for {
		j := s.Job(id)
		if is(j) {
			return j
		}
		waited := time.Since(start)
		if waited > patience {
			s.t.Fatalf("%s is %s after %s, want it %s%s", name(j), j.State, waited, want, s.record(j))
		}
		s.Advance(min(max(waited/100, soonest), latest))
	}
}

func name(j lessor.Job) string { return fmt.Sprintf("job %s of type %s", j.ID, j.Type) }

// record returns the record of a job and the reasons why it does not run.
func (s *Server) record(j lessor.Job) string {
	var b strings.Builder
	for e, err := range s.client.AllEvents(context.Background(), j.ID) {
		if err != nil {
			fmt.Fprintf(&b, "\n\tits record could not be read: %v", err)
			break
		}
		fmt.Fprintf(&b, "\n\t%s  %s by %s (%s), attempt %d", e.At.Time().Format(time.TimeOnly+".000"), e.To, e.Actor,
			e.Reason, e.Attempt)
	}
	if j.Error != nil {
		fmt.Fprintf(&b, "\n\terror: %s", *j.Error)
	}
	if why, err := s.client.Why(context.Background(), j.ID); err == nil {
		for _, r := range why.Reasons {
			fmt.Fprintf(&b, "\n\twhy not: %s", r.Detail)
		}
	}
	return b.String()
}
