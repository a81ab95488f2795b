// Package postgres is a scheduler.Store in a PostgreSQL database that several nodes share. There is no leader.
//
// It loads and saves; it decides nothing. storetest says what it promises; what follows is how.
//
// A job is where its row is, as in package sqlite:
//
//	Insert ─► queue ◄────────► lease ─► done ─► Purge
//	            ▲                │        │
//	            └── delayed ◄────┘        └─► queue (an operator's retry)
//
// New jobs that come together share a row of the queue (cohort.go).
//
// Two connections write, one serves, a few read, and at times one vacuums (vacuum.go). Time-outs and plans are pinned (pin.go), without leaving anything in a session that
// a pooler may give to another: pgbouncer may stand between in transaction mode.
//
// A transaction makes as few round trips as it can: what only writes is put off until the next read or the commit, and travels
// with it. What must be true of it is checked by the server (a division by zero), so that nothing wrong commits.
//
// A node that has the database to itself goes further (guard.go, flight.go): it decides without asking, in one round trip whose last
// statement makes sure that nobody else wrote, and sends the next transaction while the commit is on its way, in parts as it decides (pipe.go).
//
// A commit is an entry in its node's stream of changes too. Whoever grants takes the gate, reads the other streams, decides.
//
//	node 1   1 2 3 4 5          each stream has numbers without gaps; a gap means "start again from the tables"
//	node 2   1 2 (3) 4          (3) is void: a commit whose answer was lost, and that was found not to have happened
//
// Invariants:
//   - Every job is in exactly one place at every commit (storetest).
//   - All nodes wait for locks in one order and never in a circle (storetest Shared/LockOrder). Who takes himself to be alone comes to the gate
//     last, and gives way if he is not (TestGateThatWaitsForUs).
//   - What is decided on is read after the last wait, and so is the clock (Shared/StaleLook).
//   - A node that stops in a transaction holds nobody up for longer than the idle time-out (TestStoppedNode,
//     TestIdlesBetweenParts).
//   - A commit whose answer was lost is settled before anybody is answered (TestAmbiguousCommit, TestTerminatedBackends).
//   - Nothing of another node's changes is missed in silence (Shared/ChangesHaveNoGaps, TestTrimShowsAsGap, TestGuard).
//   - Transactions behind each other are committed in their order, and a failed one takes those behind it along (TestSentBehindOneOnItsWay).
//   - Time in which no node served is not charged (TestServeLikeTheRules); a node that starts moves no floor (TestStartMovesNoFloor).
//   - Heartbeats change no index (TestHeartbeatsAreHOT); no hot statement reads a whole table (TestPlans).
package postgres
