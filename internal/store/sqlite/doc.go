// Package sqlite is a scheduler.Store in one SQLite file.
//
// It loads and saves; it decides nothing. storetest says what it promises; what follows is how.
//
// A job is where its row is. Its job row is written once and never changes; a narrow row moves between the places, and
// the state follows from the place:
//
//	Insert ─► queue ◄────────► lease ─► done ─► Purge
//	            ▲                │        │
//	            └── delayed ◄────┘        └─► queue (an operator's retry)
//
// In queue, delayed and done a row is keyed by the job's seq, its place in line for life: an integer key is the cheapest to
// write, keeps the places in one order for lists, and lets no job be in one place twice. Leases are keyed by the order of
// their grants, and found by their jobs in memory (leaseIndex); what heartbeats change in them is in beat. A grant leaves its
// row in the queue, where it counts for nothing, and the log gone tells so until it is deleted (line).
//
// A job of a definition is also listed in definition_job, and there it is open until it is in done. Nothing is written there for
// other jobs.
//
// One connection writes and checkpoints; who has the turn has it, its caches and its statements. Views read on
// connections of their own, each a snapshot. At synchronous FULL an Update that returned is on the disk.
//
// Invariants:
//   - Every job is in exactly one place at every commit (storetest, Verify).
//   - A row that a grant left in the queue shows nowhere (TestLeftRowsAreNoPlace, TestJobComesBackIntoTheQueue).
//   - A definition's jobs that are not in done are its open ones, at every commit (storetest, Verify).
//   - A job has one lease at most (TestJobHasOneLease, Verify).
//   - The caches (live leases, the queue's seqs, lanes, late specs, places in line) are those of the tables at the end of
//     each transaction, committed or not (TestCachesFollowTables).
//   - A failed transaction leaves nothing: SQLite rolls back by itself when the disk is full, and every method is refused
//     from the first fault on (TestFullDisk).
//   - Time in which writes failed is not counted as served (TestFullDiskIsNotServed).
//   - No hot statement is prepared again by a bind: ranges and limits are written "+?", and ANALYZE is never run
//     (TestNothingIsPreparedAgain).
package sqlite
