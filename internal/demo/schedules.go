package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"lessor"
	"lessor/internal/pause"
)

// flaky is a type whose jobs fail, to show a circuit that opens, rests, tries and opens again.
const flaky = "demo.flaky"

// schedule stores the definitions of every tenant, and repeats each call until it succeeds.
func (d *demo) schedule(ctx context.Context) {
	for _, t := range tenants {
		m := manifest(t.id, strings.ToLower(t.name))
		for {
			if _, err := d.client.Apply(ctx, m); err == nil {
				break
			}
			if !pause.For(ctx, time.Second) {
				return
			}
		}
	}
	d.print("  demo: %d tenants have schedules; one of each always fails and opens its circuit\n", len(tenants))
}

func manifest(tenant, name string) lessor.Manifest {
	every := func(what, handler string, seconds int64) lessor.Envelope {
		return lessor.Envelope{
			JobID: new(fmt.Sprintf("demo.%s.%s", name, what)), HandlerID: &handler, LockKey: &what,
			Schedule: &lessor.ScheduleAsk{Type: new(lessor.ScheduleInterval), Seconds: &seconds},
		}
	}
	nightly := every("report", "demo.report", 0)
	nightly.Schedule = &lessor.ScheduleAsk{Type: new(lessor.ScheduleCron), Cron: new("H 2 * * *")}
	nightly.Timezone = new("Europe/Berlin")
	failing := every("flaky", flaky, 15)
	failing.MaxAttempts = new(int64(1))
	failing.Circuit = &lessor.CircuitAsk{Failures: new(int64(3)), CooldownSeconds: new(int64(60))}
	return lessor.Manifest{
		ModuleID: new("demo"), Version: new("1"), TenantID: &tenant,
		Jobs: []lessor.Envelope{every("sync", "demo.sync", 20), every("cleanup", "demo.cleanup", 45), nightly, failing},
	}
}
