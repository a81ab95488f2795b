// Package executor runs a command for each leased job, so that the job survives the death of everything but itself.
//
// A Runner (`lessor work`) leases jobs and starts one detached shim process for each; `lessor run-one` starts one for a
// lease that somebody else requested. From then on the shim owns the job:
//
//	lessor work ──starts──► shim ──owns──► command (its own process group)
//	                         │
//	                         ├─ .sentinel.json every interval       the pulse: the shim is alive
//	                         ├─ lease heartbeats                    the beat: the lease goes on
//	                         ├─ stdout.log, stderr.log: the end of the output
//	                         └─ .exit.json, then complete or fail   for as long as it takes
//
// What it promises:
//   - Killing the server, the Runner or both does not touch a running command, and its result is recorded
//     (TestKilledServerAndRunnerLoseNoJob).
//   - One attempt at a time in a folder: the shim holds the folder's lock for its life, inherited from the Runner, so
//     that there is no moment without a holder (TestHeldFolderIsAskedToStop).
//   - A cancelled job and a lost lease reach the command, within 2 s while a Runner is there
//     (TestStopReachesACommandWithinTwoSeconds): SIGTERM to its group, SIGKILL after the grace
//     (TestCancelReachesTheWholeGroup). A shim whose lease is over writes no exit record.
//   - Where commands cannot outlive the Runner, it stops them and gives their jobs back within the platform's grace, at
//     no cost, also on a full disk (TestStopGivesJobsBack, TestStopGivesJobsBackOnAFullDisk;
//     TestProcessOneStopsItsCommands in chaos). A shim in a systemd unit gets a scope of its own where that is
//     possible (TestShimRunsInItsScope).
//   - Every process that a command started ends with it, on Linux also one that left its group
//     (TestProcessThatLeftTheGroupEndsWithItsCommand).
//   - An exit record is final: if the shim was killed before it could report, the Runner reports the record
//     (TestExitRecordOfAKilledShimIsReported).
//   - Output costs no result: the lease is kept while the rest of it is sent, and the end is reported without what a
//     server does not take (TestSlowOutputCostsNoResult, TestRestOfTheOutputIsBounded).
//   - A full disk is a warning: the command goes on, and the files come back with the space (TestFullDiskIsAWarning).
//   - A job that cannot be started here costs nothing: the Runner gives it back and backs off
//     (TestFullDiskCostsJobsNothing). If an earlier attempt holds its folder, the server raises hung
//     (TestFrozenShimRaisesHung). If what is in its folder is the reason, the attempt fails
//     (TestSpoiledFolderFailsTheAttempt).
//
// It does not kill a command whose shim was killed with SIGKILL. Such a command is an orphan, fenced by its lost
// lease; no process id is stored.
//
// Inside a job, `lessor beat` and `lessor progress` write small files into the folder, which the shim checks a few
// times per second. Files need no address, outlive both sides, and cannot block either.
package executor
