// Package lessor holds the words of the scheduler: jobs, leases, denials, events and errors, as they travel over
// HTTP and through the code.
//
// One idea is common to all of them: running work is held under a lease, heartbeats keep the lease alive, and without
// them the work goes to another worker.
//
//	submit ──► queued ──grant──► leased ──first heartbeat──► running
//	             ▲                 │  │                       │  │
//	             │                 │  └──────── complete ─────┘  └─► completed
//	             │                 ├──────────  fail  ────────────► failed  ─┐
//	             │                 └────────  lease lapses ───────► expired ─┤
//	             └───────────── at retry_at, while attempts remain ──────────┘
//
// The package is vocabulary only: the standard library, no I/O, no clock, no decisions. Decisions are in
// internal/rules, and every layer above and below speaks in these types.
package lessor
