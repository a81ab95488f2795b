// Package fold is the image of the tables in memory: the order of turns, what each worker holds, when each lease may be
// over, and which definitions are blocked.
//
// A Fold follows every commit. The commits of its own node change it while they are made (Enqueue, Grant, Free …);
// those of other nodes arrive as packed changes and are applied by Follow. It can be rebuilt from the tables at any
// time, so no row is stored for it. It does no I/O and reads no clock, and it is not safe for concurrent use: the
// scheduler's loop owns it.
//
// Promises, each with its test:
//
//   - a fold that follows another node's changes equals one that made them (TestFollowedFoldEqualsTheOther)
//   - the order in which streams are read does not matter (TestGrantIsAppliedAfterItsSubmission)
//   - a gap, an unknown step or an unknown lane is ErrStale, never a wrong fold (TestStaleFoldIsNoticed)
package fold
