// Package sqlite is a scheduler.Store in one SQLite file.
//
// It loads and saves; it decides nothing. storetest states what a store promises; this comment explains how this one
// keeps it.
//
// A job is where its row is. Its job row is written once and never changes; a narrow row moves between the places, and
// the state follows from the place:
//
//	Insert ─► queue ◄────────► lease ─► done ─► Purge
//	            ▲                │        │
//	            └── delayed ◄────┘        └─► queue (an operator's retry)
//
// In queue, delayed and done a row is keyed by the job's seq, its place in line for life. An integer key is the
// cheapest to write, keeps the places in one order for lists, and lets no job be in one place twice. Leases are keyed
// by the order of their grants; the leaseIndex finds them by job, in memory. What heartbeats change in a lease is in
// beat. A grant leaves its row in the queue, and the log gone says that this row no longer counts until it is deleted
// (queueRows).
//
// A job of a definition is also listed in definition_job, as open until it is in done. Other jobs have no row there.
//
// One connection writes and checkpoints. The goroutine that holds the turn uses it, the caches and the prepared
// statements. Views read on connections of their own, each in a snapshot. The log is synced behind the writer, before
// a commit is acknowledged and before a view shows it (syncing).
//
// internal/store/row declares the columns of each row, and how they are bound and read.
//
// Invariants:
//   - Every job is in exactly one place at every commit (storetest, Verify).
//   - No reader sees a row that a grant left in the queue (TestLeftOverRowsAreNotShown,
//     TestReturnedJobIsQueuedAsItIsNow).
//   - A definition's jobs that are not in done are its open ones, at every commit (storetest, Verify).
//   - A job has at most one lease (TestJobHasOneLease, Verify).
//   - The caches (live leases, the queue's seqs, lanes, recent specs, places in line) equal the tables at the end of
//     each transaction, committed or not (TestCachesFollowTables).
//   - A failed transaction changes nothing: SQLite rolls back by itself when the disk is full, and every method fails
//     after the first fault (TestFullDiskRefusesWholeTransactions).
//   - Time in which writes failed is not counted as served (TestTimeOnAFullDiskIsNotServed).
//   - No caller sees a commit that is not on the disk
//     (TestCommitIsOnTheDiskBeforeItsCallersAreAnswered).
//   - No hot statement is prepared again by a bind: ranges and limits are written "+?", and ANALYZE is never run
//     (TestNothingIsPreparedAgain).
package sqlite
