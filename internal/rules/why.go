package rules

import (
	"fmt"

	"lessor"
)

// WhyInputs is everything that may keep a job from running.
type WhyInputs struct {
	Standing *Standing
	Now      lessor.Instant
	Serving  Serving
	Place    *int // in its lane, from 1
	Draining bool
	Capacity lessor.Capacity

	TenantPaused, ClassPaused, DefinitionPaused      bool
	Circuit                                          *Circuit // of its definition; nil = closed
	TenantRunning, TenantCap, ClassRunning, ClassCap int
	LockHolder                                       string // "" = the lock is free
	LockUntil                                        lessor.Instant
	ReservedUnits                                    int  // of a starving job for which units are reserved; 0 = none
	Asked                                            bool // a worker asked for this type lately
}

// Why returns why a job does not run now, in the order in which a grant checks. A caller restricted to a tenant
// (bound) learns no figures of the whole scheduler.
func Why(in WhyInputs, bound bool) []lessor.Reason {
	r := reasons{}
	st := in.Standing
	switch st.Place {
	case Leased:
		r.add(string(st.State()), "held by %s until %s", st.Held.Worker, Effective(st.Held, in.Now, in.Serving))
		return r
	case Ended:
		r.add(string(st.State()), "ended at %s", st.Done.Attempt.EndedAt)
		return r
	case Delayed:
		if st.Wait.State == lessor.Waiting {
			r.add("waiting_answer", "its question waits for an answer until %s", st.Wait.Until)
			return r
		}
		r.add("not_due", "due at %s", st.Wait.Until)
		return r
	}
	r.blocked(in)
	r.units(in, bound)
	if !in.Asked {
		r.add("no_worker", "no worker has asked for type %q in the last 5 minutes", st.Spec.Lane.Type)
	}
	switch {
	case len(r) > 0:
	case st.Spec.Lane.Unique:
		r.add("unique", "it is number %d of its line; only a worker that holds no lease gets it", place(in.Place))
	default:
		r.add("waiting_turn", "it is number %d of its line; others are served first", place(in.Place))
	}
	return r
}

type reasons []lessor.Reason

func (r *reasons) add(code, format string, args ...any) {
	*r = append(*r, lessor.Reason{Code: code, Detail: fmt.Sprintf(format, args...)})
}

// blocked adds what skips the job, whatever is free.
func (r *reasons) blocked(in WhyInputs) {
	if in.Draining {
		r.add("draining", "the scheduler grants nothing until draining ends")
	}
	if in.TenantPaused {
		r.add("tenant_paused", "its tenant is paused")
	}
	if in.ClassPaused {
		r.add("class_paused", "its fairness class is paused")
	}
	if in.DefinitionPaused {
		r.add("definition_paused", "its definition %s is paused or disabled", in.Standing.Spec.Lane.Definition)
	}
	if in.Circuit.Blocks(in.Now) {
		r.circuit(in.Circuit)
	}
	if in.TenantCap > 0 && in.TenantRunning >= in.TenantCap {
		r.add("tenant_cap", "its tenant holds %d of %d leases", in.TenantRunning, in.TenantCap)
	}
	if in.ClassCap > 0 && in.ClassRunning >= in.ClassCap {
		r.add("class_cap", "its fairness class holds %d of %d leases", in.ClassRunning, in.ClassCap)
	}
	if in.LockHolder != "" {
		r.add("lock_held", "lock %q is held by %s until %s", in.Standing.Spec.Lane.LockKey, in.LockHolder, in.LockUntil)
	}
}

// units adds what is missing of the capacity.
func (r *reasons) units(in WhyInputs, bound bool) {
	need, c := in.Standing.Spec.Lane.Units, in.Capacity
	switch {
	case need <= c.AvailableUnits && in.ReservedUnits == 0:
	case bound:
		r.add("units", "it needs %d units; not enough are free", need)
	case in.ReservedUnits > 0:
		r.add("units_kept", "free units are kept for a job that needs %d and has waited long", in.ReservedUnits)
	default:
		r.add("units", "it needs %d units; %d of %d usable are free", need, c.AvailableUnits, c.UsableUnits)
		if c.Busy > 0 {
			r.add("busy", "the busy rating is %d (%s)", c.Busy, c.BusySource)
		}
	}
}

func (r *reasons) circuit(c *Circuit) {
	if c.State == lessor.CircuitHalfOpen {
		r.add("circuit_open", "the circuit of its definition %s is open; one of its jobs is being tried", c.Definition)
		return
	}
	r.add("circuit_open", "the circuit of its definition %s is open until %s", c.Definition, c.RetryAt)
}

func place(p *int) int {
	if p == nil {
		return 0
	}
	return *p
}
