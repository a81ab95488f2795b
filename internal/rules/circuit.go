package rules

import "lessor"

// Circuit is a definition's circuit breaker. The zero value of State is a closed one that never failed.
//
//	closed ──failures in a row──► open ──cooldown, one grant──► half open ──trial succeeds──► closed
//	                               ▲                               │
//	                               └─────── trial fails ───────────┘
type Circuit struct {
	Definition string
	Tenant     lessor.TenantID
	State      lessor.CircuitState // "" = closed
	Failures   int                 // in a row
	OpenedAt   lessor.Instant
	RetryAt    lessor.Instant // when a trial may begin
	Trial      lessor.LeaseID // the lease of the trial, while half open
}

// CircuitChange is a change of a circuit that raises or clears an alert.
type CircuitChange uint8

// The changes of a circuit.
const (
	CircuitUnchanged CircuitChange = iota
	CircuitOpened
	CircuitReopened // the trial failed
	CircuitClosed
)

// Closed reports whether jobs may run.
func (c *Circuit) Closed() bool { return c == nil || c.State == "" || c.State == lessor.CircuitClosed }

// Blocks reports whether a tick or a grant must wait: the circuit is open before its next trial, or during one.
func (c *Circuit) Blocks(now lessor.Instant) bool {
	return !c.Closed() && !c.Ready(now)
}

// Ready reports whether the next grant is the trial of an open circuit.
func (c *Circuit) Ready(now lessor.Instant) bool {
	return c != nil && c.State == lessor.CircuitOpen && now >= c.RetryAt
}

// Idle reports whether a circuit need not be stored.
func (c *Circuit) Idle() bool { return c.Closed() && c.Failures == 0 }

// Try makes a lease the trial of an open circuit.
func (c *Circuit) Try(lease lessor.LeaseID) { c.State, c.Trial = lessor.CircuitHalfOpen, lease }

// Count counts the end of one attempt of the definition's jobs. While the circuit is not closed, only the trial counts:
// the other leases were granted before the circuit opened.
func (c *Circuit) Count(o Outcome, lease lessor.LeaseID, d *Definition, now lessor.Instant) CircuitChange {
	if c.Closed() {
		return c.count(o, d, now)
	}
	if c.State != lessor.CircuitHalfOpen || c.Trial != lease {
		return CircuitUnchanged
	}
	c.Trial = lessor.LeaseID{}
	switch o {
	case OutcomeCompleted:
		c.Reset()
		return CircuitClosed
	case OutcomeFailed, OutcomeExpired:
		c.Failures++
		c.open(d, now)
		return CircuitReopened
	default: // released or cancelled: the trial proved nothing, and another may begin
		c.State, c.RetryAt = lessor.CircuitOpen, now
	}
	return CircuitUnchanged
}

func (c *Circuit) count(o Outcome, d *Definition, now lessor.Instant) CircuitChange {
	switch o {
	case OutcomeCompleted:
		c.Failures = 0
	case OutcomeFailed, OutcomeExpired:
		c.Failures++
		if c.Failures >= d.Failures {
			c.open(d, now)
			return CircuitOpened
		}
	}
	return CircuitUnchanged
}

func (c *Circuit) open(d *Definition, now lessor.Instant) {
	c.State, c.OpenedAt, c.RetryAt = lessor.CircuitOpen, now, now.Add(d.Cooldown)
}

// Reset closes a circuit and clears its count.
func (c *Circuit) Reset() {
	*c = Circuit{Definition: c.Definition, Tenant: c.Tenant}
}

// ShowCircuit returns a circuit as callers see it.
func ShowCircuit(c *Circuit) lessor.Circuit {
	s := lessor.Circuit{
		JobID: c.Definition, State: c.State, Failures: c.Failures, OpenedAt: c.OpenedAt,
		RetryAt: c.RetryAt,
	}
	if s.State == "" {
		s.State = lessor.CircuitClosed
	}
	return s
}
