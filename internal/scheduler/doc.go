// Package scheduler grants, renews and ends leases. One transaction answers a batch of calls: it loads, decides with
// internal/rules and internal/lanes, and saves. Its calls are answered after its commit.
//
// Where code runs:
//
//	goroutine         files                      what is there
//	a caller's        submit.go, request.go …    the public verbs: check, put a call into the queue, wait for the
//	                                             answer; reads of the store on a snapshot of their own
//	the loop (Run)    loop*.go                   the loop struct: the fold, pending commits, parked requests, settings
//	the loop          pass*.go                   one transaction, in the order of pass.run
//	the loop          internal/fold, lanes       the image of the tables in memory, pure
//	one per commit    loop_commit.go, await      waits for a pending commit and answers its calls
//	background        sample.go, exchange.go,    the host's samples, the exchange of workers between nodes, and the
//	                  idlelanes.go               search for lanes that no job refers to
//
// The Scheduler has no pointer to the loop: a caller reaches its state only by a call (call.go), whose function the
// loop runs between two commits or inside a transaction.
//
// One commit: run waits, step takes the calls (loop.go); prepare brings the fold up to date (loop_serve.go); commit
// decides how to commit, runs the pass and answers (loop_commit.go); pass.run does the work in the order in which all
// nodes lock (pass.go). loop_retry.go is for transactions that failed. A test steps the loop by hand
// (TestLoopIsSteppedByHand).
//
// The order of grants is lanes.Choose; pass_grant.go asks it for each request.
//
// Promises, each with its test: an answer is given only after the commit (TestAnswersAfterCommit); a lease that is over
// changes nothing (TestOverLeaseChangesNothing); no lease ends early (TestDayOfWorkers in node,
// TestStallOfOurOwnIsNotChargedToWorkers); counts are a fold of the rows and never drift (TestRandomLives).
package scheduler
