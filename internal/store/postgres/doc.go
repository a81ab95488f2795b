// Package postgres is a scheduler.Store in a PostgreSQL database that several nodes share. There is no leader.
//
// It loads and saves; it decides nothing. storetest states what it promises; this comment explains how it keeps that.
//
// A job is where its row is, as in package sqlite:
//
//	Insert ─► queue ◄────────► lease ─► done ─► Purge
//	            ▲                │        │
//	            └── delayed ◄────┘        └─► queue (an operator's retry)
//
// New jobs that come together share a row of the queue (cohort.go).
//
// Two connections write, one serves, a few read, and at times one vacuums (vacuum.go). Package wire makes them.
//
// A transaction makes as few round trips as it can: a write is put off until the next read or the commit, and travels
// with it. The server checks the assumptions of a transaction (a division by zero fails it), so that nothing wrong is
// committed.
//
// A node that has the database to itself goes further (guard.go, flight.go). It decides without reading, in one round
// trip whose last statement checks that no other node has written, and sends the next transaction, in parts, while the
// commit is on its way.
//
// A commit is also an entry in its node's stream of changes. Before a node grants, it takes the gate and reads the
// streams of the others.
//
//	node 1   1 2 3 4 5          the numbers of a stream have no gaps; a gap means "start again from the tables"
//	node 2   1 2 (3) 4          (3) is void: a commit whose answer was lost and that was found not to have happened
//
// Invariants:
//   - Every job is in exactly one place at every commit (storetest).
//   - All nodes wait for locks in one order and never in a circle (storetest Shared/LockOrder). A node that believes it
//     is alone takes the gate lock last, and backs off if another node holds it
//     (TestSoleNodeGivesWayToTheHolderOfTheGate).
//   - Rows and clock are read after the last wait for a lock (Shared/LeaseChangedWhileItsLockIsAwaited).
//   - A node that stops in a transaction keeps its locks no longer than the idle time-out
//     (TestStoppedNodeLosesItsLocks, TestIdleTimeoutEndsATransactionBetweenParts).
//   - A commit whose answer was lost is settled before its calls are answered (TestLostAnswerOfACommitIsResolved,
//     TestTerminatedSessionsLoseNoCommit).
//   - A node never misses a change of another node in silence (Shared/ChangesHaveNoGaps, TestTrimShowsAsGap,
//     TestGuardFailsTheCommitIfAnotherNodeWrote).
//   - Transactions behind each other are committed in their order; if one fails, so do those behind it
//     (TestPendingTransactionsCommitInTheirOrder, TestFailureFailsTheNextTransaction).
//   - Time in which no node served is not charged (TestServeAgreesWithTheRules, Shared/ShortLivesAreNoService); to open
//     a store moves no floor (TestStartMovesNoFloor).
//   - Heartbeats change no index (TestHeartbeatsAreHOT); no hot statement reads a whole table
//     (TestNoStatementReadsAWholeTable).
package postgres
