package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// Fault is a kind of fault.
type Fault string

// The faults.
const (
	Crash    Fault = "crash"    // a node is killed, and comes back
	Loop     Fault = "loop"     // all nodes are killed, and again as soon as they are back
	Stop     Fault = "stop"     // a node is stopped in order, and comes back: a rolling restart
	Pause    Fault = "pause"    // a node stands still
	Workers  Fault = "workers"  // workers stand still, or forget everything
	Messages Fault = "messages" // calls and answers are lost, late, or doubled
	Commits  Fault = "commits"  // commits are refused, or their answers are lost
	Down     Fault = "down"     // the database is out of reach
	Hang     Fault = "hang"     // the database stands still
	Full     Fault = "full"     // its disk is full
	Clock    Fault = "clock"    // its clock is set
	Drift    Fault = "drift"    // no two clocks go equally fast
	Failover Fault = "failover" // an older standby is promoted, or a backup restored, also while no node runs
)

// AllFaults are the faults that a plan may have.
var AllFaults = append(slices.Clone(usual), Loop)

// usual are the faults of which each is in a third of the worlds. The others take much time to simulate.
var usual = []Fault{Crash, Stop, Pause, Workers, Messages, Commits, Down, Hang, Full, Clock, Drift, Failover}

// Plan says how large a world is, how long it lives, and which faults it has. Plan and seed decide everything.
type Plan struct {
	Seed      uint64
	Nodes     int
	Workers   int
	Tenants   int
	Length    time.Duration
	Faults    []Fault
	Storm     bool          // faults come seven times as often, and there is little silence
	Handovers float64       // the share of statements at which others may run
	Latency   time.Duration // of such a statement, on average
}

// PlanOf returns the plan of a seed. Most worlds are small: faults of interleavings need few that interleave. In a
// storm there are several nodes, and twice as many kinds of faults.
func PlanOf(seed uint64, length time.Duration, storm bool) Plan {
	r := rand.New(rand.NewPCG(seed, 1))
	small := func(most int) int { return 1 + int(float64(most)*r.Float64()*r.Float64()) }
	p := Plan{
		Seed: seed, Nodes: small(5), Workers: 2 + small(12), Tenants: small(6), Length: length,
		Handovers: []float64{0.02, 0.1, 0.4}[r.IntN(3)], Latency: time.Duration(1+r.IntN(3000)) * time.Microsecond,
	}
	if r.IntN(20) == 0 {
		p.Workers, p.Tenants = 50, 20
	}
	kinds := 1
	if p.Storm = storm; storm {
		p.Nodes, kinds = 2+r.IntN(4), 2
	}
	if r.IntN(8) > 0 { // one of eight worlds is without faults
		for _, f := range usual {
			if r.IntN(3) < kinds {
				p.Faults = append(p.Faults, f)
			}
		}
		if r.IntN(10) < kinds {
			p.Faults = append(p.Faults, Loop)
		}
	}
	return p
}

func (p *Plan) has(f Fault) bool { return slices.Contains(p.Faults, f) }

// Command returns the command that replays the world of the plan.
func (p *Plan) Command() string {
	faults := make([]string, len(p.Faults))
	for i, f := range p.Faults {
		faults[i] = string(f)
	}
	storm := ""
	if p.Storm {
		storm = " -storm"
	}
	return fmt.Sprintf("go run ./sim -seed %d%s -for %v -nodes %d -workers %d -tenants %d -faults '%s'",
		p.Seed, storm, p.Length, p.Nodes, p.Workers, p.Tenants, strings.Join(faults, ","))
}

// configure draws the settings of the server.
func (w *world) configure(r *rand.Rand) {
	pick := func(values ...int) int { return values[r.IntN(len(values))] }
	seconds := func(values ...int) time.Duration { return time.Duration(pick(values...)) * time.Second }
	w.config = scheduler.Config{
		TTL: seconds(3, 10, 60), Grace: seconds(0, 0, 2), Sweep: time.Second,
		TotalUnits: pick(12, 30, 100), ReserveUnits: pick(0, 2, 5), Percent: rules.DefaultPercent,
		BusyPoints: rules.DefaultBusyPoints(), TenantCap: pick(2, 5, 25), MaxInterruptions: pick(2, 20),
		Brake:    rules.BrakeConfig{SharePercent: 30, Min: pick(4, 10), Rate: pick(2, 200)},
		Backfill: r.IntN(4) == 0, FailedJobs: r.IntN(2) == 0,
		Jobs: rules.SubmitConfig{
			MaxAttempts: 5, BackoffFirst: time.Second, BackoffMax: 20 * time.Second, PayloadLimit: 1 << 10,
		},
		Journal: rules.JournalLimits{Entry: 1 << 10, Job: int64(pick(1<<10, 1<<16))}, MaxMessages: pick(3, 100),
		Output:  rules.OutputKeep{Head: int64(pick(0, 64)), Tail: int64(pick(0, 128, 256))},
		Circuit: scheduler.CircuitConfig{Failures: pick(1, 3), Cooldown: 20 * time.Second},
	}
	if r.IntN(4) > 0 {
		w.config.Busy = new(0)
	}
	if r.IntN(3) == 0 {
		w.config.Retention = scheduler.Retention{Jobs: 10 * time.Minute, Audit: 20 * time.Minute}
	}
	w.pace = scheduler.Pace{
		// seldom, since most steps of a simulated hour do nothing else. One and a half times as much must be less than
		// a second, after which the floor moves.
		Serve:  time.Duration(pick(250, 600, 600, 600, 600, 600, 600, 600)) * time.Millisecond,
		Follow: time.Duration(pick(100, 600, 600, 600, 600, 600, 600, 600)) * time.Millisecond,
		Shared: seconds(2, 10), Lanes: seconds(45, 180),
	}
}

// sample is a measurement of a host that is mostly idle.
func (w *world) sample(r *rand.Rand) lessor.BusyInputs {
	in := lessor.BusyInputs{CPUPercent: 10, MemoryPercent: 20}
	if !w.quiet && r.IntN(5) == 0 {
		in.CPUPercent, in.MemoryPercent = 100*r.Float64(), 100*r.Float64()
		in.P95MS, in.ErrorShare, in.InFlight, in.Requests = 2000*r.Float64(), 0.2*r.Float64(), r.IntN(150), r.IntN(2)
	}
	return in
}
