// Package memory is a scheduler.Store in memory that several nodes share, for the simulator. Nothing survives the
// process.
//
// It promises what package postgres does, by the same means: storetest runs on both, and the files have the same names.
// A statement sees what was committed before it began, and what its own transaction wrote. Rows that a transaction
// changes are locked until its end, and other transactions wait for them; so do two that make the same key. The gate is
// one of these locks. A commit is an entry of its node's stream of changes, which settles a commit whose answer is
// lost.
//
// Rows are immutable and tables are persistent trees, so a snapshot of the whole database costs one copy of a struct,
// and reading is in a fixed order. A transaction keeps the list of its writes. When another transaction has committed
// meanwhile, it applies them again to the tables as they are then; the locks make sure that this has the same result.
//
// A Stepper decides the rest: at each statement it may let others run first, crash the node by a panic, or stop it; it
// says when a transaction that waits for a lock tries again, and what becomes of each commit. With one there is no
// goroutine, no waiting and no time of the machine here, and the same decisions give the same results. Without one the
// store uses the clock of the machine and waits for real, as storetest wants it.
package memory
