// The command sim simulates clusters: one to five nodes over a store in memory, workers, submitters, an operator, and
// faults, all in one goroutine and on a clock of their own. A seed decides everything: the same seed gives the same
// trace, step by step.
//
// Everything that acts is a task, a coroutine (task.go). A task runs until it sleeps, waits for an answer, or reaches a
// statement of the database; the world then picks the next by time, and by chance among equals. The code under test is
// the scheduler as it is (scheduler.Manual steps its loop) with the store of package memory, whose statements, lock
// waits and commits are hand-overs (watched.go).
//
//	plan.go                 what a seed decides: the size of the world, its settings, its faults
//	world.go                the life of a world: traffic and faults, then calm until every job has ended
//	traffic.go              when there is traffic, and when only timers and faults go on
//	task.go, node.go        coroutines, and the processes of the server
//	client.go               the network: calls and answers are lost, late, or doubled
//	worker.go, finish.go, turn.go, people.go, alter.go, operator.go, recovery.go   the traffic: every verb of the API
//	journal.go, output.go, dialog.go   journals, output, questions and messages, with what must hold for them
//	monitor.go              the monitor of long jobs, which judges them by their pulses
//	browse.go, explain.go, badbodies.go    lists, page by page, and bodies that must be refused
//	fault.go                the faults
//	known.go                what callers know from answers alone
//	check.go, closing.go    what must hold at every commit, and at the end
//	cause.go                what must hold for the end of a lease: it has a cause, and comes neither early nor late
//	waits.go                requests that wait: none may do so beside a job that it may have
//	tick.go                 ticks: nothing but a fault makes one late
//	calm.go                 the calm in which everything must end
//	shrink.go               the search for a small world that breaks the same promise
//
// The promises and where they are checked:
//
//	P1   what was acknowledged is in the tables     at the answer, at later reads, at the end
//	P2   one key, one job                           at the answer, at the end
//	P3   one lease a job, fences rise               at every commit that grants, also after a failover
//	P4   a lease that is over changes nothing       at every answer, also to calls that come late
//	P5   no lease expires early, in true time       at every commit
//	P6   nor more than two seconds late             at every commit, and every five seconds
//	P7   outages are free                           at every commit
//	P8   every job ends, every call is answered     in the calm at the end
//	P8   no request waits beside a job for it       every five seconds
//	P9   attempts are bounded                       at every commit that grants, and every five minutes
//	P10  a tick makes one job                       every five minutes
//	P10  no tick is late without a fault            every five seconds
//	P11  units, caps, locks, unique, pauses         at every commit that grants
//	P13  the record replays, and only grows         every five minutes
//	P14  tenants are separate                       at every grant and list, and with foreign tokens
//	P15  what was refused changed nothing           at the end: a call explains each job
//
// A journal only grows, and what was acknowledged stays under its number. A question gets one answer, of those that it
// allows, and ends no sooner than it said. Messages come in order, and not again once they were confirmed. Output that
// is kept was printed, and has all of the beginning and the end that were acknowledged. No entry is in two pages of a
// list, and none that was known before is left out.
//
// Every lease that ends has a cause: it lapsed, or somebody asked for its end. The limits of tenants and of units are
// those that are in force at the commit.
//
// Beside them the fold of every node must equal the tables, no commit may fail for a reason that no fault explains, no
// two transactions may wait for each other, nothing may panic. P12 has a test of its own (TestTenantsGetEqualShares),
// and so have large jobs (TestLargeJobsGetTheirTurn): both need more work than the workers can do. What is not
// simulated: HTTP, SQL, disks, and nodes of another release. Package chaos has those. So of package rules the simulator
// does not reach what others call: CheckSchema (the stores), BatchView and the names of tokens (httpapi), and what the
// pages show.
//
// A world that breaks a promise is reduced (fewer faults, nodes, workers, less time) and printed as a command that
// replays it and prints what happens:
//
//	go run ./sim -seed 171 -for 3m54s -nodes 4 -workers 3 -tenants 1 -faults 'messages,commits,hang,drift,failover'
//
// A world lives an hour of simulated time, in which traffic comes and goes (traffic.go), and then as long as everything
// takes to end. That costs a processor about 0.2 s. `go test ./sim` runs 2,000 worlds, in about four minutes of
// two processors, and `make soak` as many as SEEDS and TIME say. With -storm a world has several nodes, little silence
// and seven times as many faults: ten minutes of it (-for 10m) cost as much as an hour of another.
package main
