package rules

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"lessor"
)

var breaker = &Definition{ID: "ledger.nightly", Failures: 3, Cooldown: time.Minute}

func leaseNo(n byte) lessor.LeaseID { return lessor.LeaseID{UUID: lessor.UUID{n}} }

func TestCircuitOpensAfterFailuresInARow(t *testing.T) {
	c := &Circuit{Definition: breaker.ID}
	for _, o := range []Outcome{OutcomeFailed, OutcomeExpired, OutcomeReleased, OutcomeCancelled} {
		same(t, "change", c.Count(o, leaseNo(1), breaker, after(0)), CircuitUnchanged)
	}
	same(t, "failures", c.Failures, 2)
	c.Count(OutcomeCompleted, leaseNo(1), breaker, after(0))
	if !c.Idle() {
		t.Errorf("a success leaves %+v", c)
	}
	for range 2 {
		same(t, "change", c.Count(OutcomeFailed, leaseNo(1), breaker, after(0)), CircuitUnchanged)
	}
	same(t, "third failure", c.Count(OutcomeExpired, leaseNo(1), breaker, after(time.Second)), CircuitOpened)
	same(t, "shown", ShowCircuit(c), lessor.Circuit{
		JobID: breaker.ID, State: lessor.CircuitOpen, Failures: 3, OpenedAt: after(time.Second),
		RetryAt: after(61 * time.Second),
	})
	if !c.Blocks(after(61*time.Second-time.Millisecond)) || c.Blocks(after(61*time.Second)) || c.Closed() {
		t.Errorf("blocks wrongly: %+v", c)
	}
}

func TestOnlyTheTrialCountsWhileOpen(t *testing.T) {
	open := func() *Circuit {
		return &Circuit{
			Definition: breaker.ID, State: lessor.CircuitOpen, Failures: 3, OpenedAt: after(0),
			RetryAt: after(time.Minute),
		}
	}
	late := open()
	for _, o := range []Outcome{OutcomeCompleted, OutcomeFailed} {
		late.Count(o, leaseNo(9), breaker, after(2*time.Minute))
	}
	same(t, "after ends of older leases", late, open())

	for name, c := range map[string]struct {
		outcome Outcome
		lease   lessor.LeaseID
		change  CircuitChange
		want    Circuit
	}{
		"success closes": {OutcomeCompleted, leaseNo(1), CircuitClosed, Circuit{Definition: breaker.ID}},
		"failure opens again": {
			OutcomeFailed, leaseNo(1), CircuitReopened,
			Circuit{
				Definition: breaker.ID, State: lessor.CircuitOpen, Failures: 4, OpenedAt: after(90 * time.Second),
				RetryAt: after(150 * time.Second),
			},
		},
		"expiry opens again": {
			OutcomeExpired, leaseNo(1), CircuitReopened,
			Circuit{
				Definition: breaker.ID, State: lessor.CircuitOpen, Failures: 4, OpenedAt: after(90 * time.Second),
				RetryAt: after(150 * time.Second),
			},
		},
		"release lets another try": {
			OutcomeReleased, leaseNo(1), CircuitUnchanged,
			Circuit{
				Definition: breaker.ID, State: lessor.CircuitOpen, Failures: 3, OpenedAt: after(0),
				RetryAt: after(90 * time.Second),
			},
		},
		"another lease is nothing": {
			OutcomeCompleted, leaseNo(2), CircuitUnchanged,
			Circuit{
				Definition: breaker.ID, State: lessor.CircuitHalfOpen, Failures: 3, OpenedAt: after(0),
				RetryAt: after(time.Minute), Trial: leaseNo(1),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := open()
			b.Try(leaseNo(1))
			if !b.Blocks(after(time.Hour)) || b.Ready(after(time.Hour)) {
				t.Error("a second job may be tried beside the first")
			}
			same(t, "change", b.Count(c.outcome, c.lease, breaker, after(90*time.Second)), c.change)
			same(t, "circuit", *b, c.want)
		})
	}
}

// TestCircuitFollowsItsStates draws random histories, and checks that there is never a second trial, and that a circuit
// opens and closes in turns.
func TestCircuitFollowsItsStates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &Circuit{Definition: breaker.ID}
		now, opened := after(0), false
		for n := range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
			id := leaseNo(byte(n))
			if c.Ready(now) && rapid.Bool().Draw(t, "try") {
				c.Try(id)
			}
			if c.State == lessor.CircuitHalfOpen && rapid.Bool().Draw(t, "end the trial") {
				id = c.Trial
			}
			o := rapid.SampledFrom([]Outcome{
				OutcomeCompleted, OutcomeFailed, OutcomeExpired, OutcomeReleased,
				OutcomeCancelled,
			}).Draw(t, "outcome")
			switch change := c.Count(o, id, breaker, now); {
			case change == CircuitOpened && opened, change == CircuitClosed && !opened, change == CircuitReopened &&
				!opened:
				t.Fatalf("changed by %d while open is %v", change, opened)
			case change != CircuitUnchanged:
				opened = change != CircuitClosed
			}
			if c.Closed() == opened || c.Closed() && c.Failures >= breaker.Failures ||
				(c.State == lessor.CircuitHalfOpen) == c.Trial.IsZero() {
				t.Fatalf("opened %v and %+v", opened, c)
			}
		}
	})
}

func TestShownClosedCircuitSaysSo(t *testing.T) {
	same(t, "state", ShowCircuit(&Circuit{Failures: 1}).State, lessor.CircuitClosed)
}
