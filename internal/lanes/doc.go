// Package lanes is the order of turns in memory: which queued job is next for a worker that asks.
//
// An Index is a fold of the queue and lease tables. It promises that Next answers as if it had looked at every queued
// job, at a cost that does not grow with the backlog, the number of tenants, or how many of them are held back. It does
// no I/O, reads no clock, and is not safe for concurrent use: the scheduler's one writer owns it. When its counts and
// the tables disagree, the owner throws it away and builds another with Add, Hold and Enqueue.
//
// What is kept, from the question to the answer:
//
//	shape    priority, type or any, unique, units: what a request filters on
//	 └ stand    a tenant at a shape, in the shape's heap by the tenant's virtual time
//	    └ seat     a class at a stand, in the stand's heap by the class's virtual time
//	       └ lane     in the seat's heap by its oldest job
//	          └ line     its queued jobs in the order of seq
//
// A lane that is empty, whose lock is held or whose definition is blocked is in no heap; neither is the seat of a class
// that is paused or at its cap, nor the stand of such a tenant, nor a seat or stand with nothing in it. What is held
// back costs nothing until it is let go.
//
// Virtual time is kept for each tenant at each priority, and for each class of a tenant at each priority. V is the
// start tag of the tenant or class that was served last there. A grant starts at max(own, V) and sets own to start +
// units / weight. A tenant or class that becomes eligible again starts at V at least, so that it collects no credit
// while it is empty, paused, capped or locked. Of equal virtual times, the one whose lane was added first goes first.
//
// The grants of other nodes are read stream by stream, so their order is lost. Those of one reading are a batch: each
// starts at max(own, V before the batch), as it did on the node that made it, and V becomes the latest of these starts.
//
// Invariants, each with its test:
//
//   - Next answers as a search of all jobs would (TestIndexAgreesWithOracle)
//   - nothing is in a heap that may not be granted, and everything that may is (checkHeaps, after every step of it)
//   - no Take passes a cap or takes a lock that is held (TestTakeNeverPassesCapOrLock)
//   - backlogged tenants get their part of any 1000 grants (TestEqualTenantsShareAnyWindow), of several nodes too
//     (TestEqualTenantsShareAnyWindowOfSeveralNodes)
//   - rows that name a lane which was not added cause no panic and are counted nowhere (TestUnknownLaneTakesNothing)
//   - an Index built again from the tables has the same counts (TestRebuildGivesSameCounts)
package lanes
