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
// In all four places a row is keyed by the job's seq, its place in line for life: an integer key is the cheapest to write,
// keeps the places in one order for lists, and lets no job be in one place twice.
//
// One connection writes and checkpoints; who has the turn has it, its caches and its statements. Views read on
// connections of their own, each a snapshot. At synchronous FULL an Update that returned is on the disk.
//
// Invariants:
//   - Every job is in exactly one place at every commit (storetest, Verify).
//   - The caches (live leases, lanes, late specs, places in line) are those of the tables at the end of each transaction,
//     committed or not (TestCachesFollowTables).
//   - A failed transaction leaves nothing: SQLite rolls back by itself when the disk is full, and every method is refused
//     from the first fault on (TestFullDisk).
//   - Time in which writes failed is not counted as served (TestFullDiskIsNotServed).
//   - No hot statement is prepared again by a bind: ranges and limits are written "+?", and ANALYZE is never run
//     (TestNothingIsPreparedAgain).
package sqlite
