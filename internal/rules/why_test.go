package rules

import (
	"testing"
	"time"

	"lessor"
)

// stuck returns a queued job of type resize that needs 4 units, with everything free and asked for, after the changes.
func stuck(changes ...func(*WhyInputs)) WhyInputs {
	s := queuedJob()
	spec := *full
	spec.Lane.Unique = false
	s.Spec = &spec
	in := WhyInputs{
		Standing: s, Now: start, Serving: served(start), Place: new(3), Asked: true, TenantCap: 25, TenantRunning: 24,
		ClassCap: 2, ClassRunning: 1,
		Capacity: lessor.Capacity{UsableUnits: 10, AvailableUnits: 4, Busy: 8, BusySource: lessor.BusyHost},
	}
	for _, change := range changes {
		change(&in)
	}
	return in
}

func blockAll(in *WhyInputs) {
	in.Draining, in.TenantPaused, in.ClassPaused, in.DefinitionPaused, in.Asked = true, true, true, true, false
	in.Circuit = &Circuit{Definition: "nightly", State: lessor.CircuitOpen, RetryAt: after(time.Hour)}
	in.TenantRunning, in.ClassRunning = 25, 2
	in.LockHolder, in.LockUntil = "w7", after(time.Minute)
	in.Capacity.AvailableUnits = 3
}

func TestWhyHasEveryReasonInTheOrderOfAGrant(t *testing.T) {
	same(t, "the reasons", Why(stuck(blockAll), false), []lessor.Reason{
		{Code: "draining", Detail: "the scheduler grants nothing until draining ends"},
		{Code: "tenant_paused", Detail: "its tenant is paused"},
		{Code: "class_paused", Detail: "its fairness class is paused"},
		{Code: "definition_paused", Detail: "its definition nightly is paused or disabled"},
		{Code: "circuit_open", Detail: "the circuit of its definition nightly is open until 2026-02-06T21:10:00.000Z"},
		{Code: "tenant_cap", Detail: "its tenant holds 25 of 25 leases"},
		{Code: "class_cap", Detail: "its fairness class holds 2 of 2 leases"},
		{Code: "lock_held", Detail: `lock "door" is held by w7 until 2026-02-06T20:11:00.000Z`},
		{Code: "units", Detail: "it needs 4 units; 3 of 10 usable are free"},
		{Code: "busy", Detail: "the busy rating is 8 (host)"},
		{Code: "no_worker", Detail: `no worker has asked for type "resize" in the last 5 minutes`},
	})
}

func TestWhyHasOneReasonAlone(t *testing.T) {
	waiting := func(in *WhyInputs) {
		blockAll(in)
		in.Standing = waitingJob(lessor.Failed)
	}
	heldUnderFloor := func(in *WhyInputs) {
		blockAll(in)
		in.Standing = heldJob()
		in.Serving.Since = after(30 * time.Second)
	}
	for _, c := range []struct {
		name   string
		change func(*WhyInputs)
		walled bool
		want   []lessor.Reason
	}{
		{
			"nothing is in its way", func(*WhyInputs) {}, false,
			[]lessor.Reason{{Code: "waiting_turn", Detail: "it is number 3 of its line; others are served first"}},
		},
		{"only a worker without a lease gets it", func(in *WhyInputs) {
			in.Standing.Spec.Lane.Unique = true
		}, false, []lessor.Reason{{
			Code:   "unique",
			Detail: "it is number 3 of its line; only a worker that holds no lease gets it",
		}}},
		{"its place is not known", func(in *WhyInputs) {
			in.Place = nil
		}, false, []lessor.Reason{{
			Code:   "waiting_turn",
			Detail: "it is number 0 of its line; others are served first",
		}}},
		{"a cap of 0 is none", func(in *WhyInputs) {
			in.TenantCap, in.ClassCap = 0, 0
		}, false, []lessor.Reason{{
			Code:   "waiting_turn",
			Detail: "it is number 3 of its line; others are served first",
		}}},
		{"one unit too few on an idle host", func(in *WhyInputs) {
			in.Capacity.AvailableUnits, in.Capacity.Busy = 3, 0
		}, false, []lessor.Reason{{Code: "units", Detail: "it needs 4 units; 3 of 10 usable are free"}}},
		{"one unit too few, told to a tenant", func(in *WhyInputs) {
			in.Capacity.AvailableUnits = 3
		}, true, []lessor.Reason{{Code: "units", Detail: "it needs 4 units; not enough are free"}}},
		{"units are kept for another", func(in *WhyInputs) {
			in.ReservedUnits = 9
		}, false, []lessor.Reason{{
			Code:   "units_kept",
			Detail: "free units are kept for a job that needs 9 and has waited long",
		}}},
		{"units are kept for another, told to a tenant", func(in *WhyInputs) {
			in.ReservedUnits = 9
		}, true, []lessor.Reason{{Code: "units", Detail: "it needs 4 units; not enough are free"}}},
		{"one of its definition is being tried", func(in *WhyInputs) {
			in.Circuit = &Circuit{Definition: "nightly", State: lessor.CircuitHalfOpen}
		}, false, []lessor.Reason{{
			Code:   "circuit_open",
			Detail: "the circuit of its definition nightly is open; one of its jobs is being tried",
		}}},
		{"it may be tried itself", func(in *WhyInputs) {
			in.Circuit = &Circuit{State: lessor.CircuitOpen, RetryAt: start}
		}, false, []lessor.Reason{{
			Code:   "waiting_turn",
			Detail: "it is number 3 of its line; others are served first",
		}}},
		{"it is not due", waiting, false, []lessor.Reason{{
			Code:   "not_due",
			Detail: "due at 2026-02-06T21:10:00.000Z",
		}}},
		{
			"it runs, until its effective end", heldUnderFloor, false,
			[]lessor.Reason{{Code: "leased", Detail: "held by w1 until 2026-02-06T20:11:30.000Z"}},
		},
		{"it has ended", func(in *WhyInputs) {
			in.Standing = endedJob(lessor.Expired)
		}, false, []lessor.Reason{{Code: "expired", Detail: "ended at 2026-02-06T20:10:00.000Z"}}},
	} {
		same(t, c.name+": the reasons", Why(stuck(c.change), c.walled), c.want)
	}
}
