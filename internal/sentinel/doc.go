// Package sentinel reads and writes a workspace: one folder per job, with the files that show that a command is alive
// and how it ended. The shim writes them and the server's monitor reads them; only this package knows their names and
// formats.
//
//	{workspace}/.lessor-workspace             the workspace's id, made once
//	{workspace}/jobs/{jobId}/.sentinel.json   the pulse of a running command, gone when it has ended
//	{workspace}/jobs/{jobId}/.exit.json       how it ended, enough to complete the job when nobody saw it end
//	{workspace}/jobs/{jobId}/.lock            held with flock for a shim's life: one attempt at a time in a folder
//	{workspace}/jobs/{jobId}/.stop            attempts with a lower fence than this must end
//
// What it promises:
//   - A reader sees a whole file or none: a file is written under a temporary name, synced and renamed
//     (TestReaderNeverSeesHalfAFile).
//   - A file that is not a plain sentinel is reported with a Reason, and never followed or obeyed: links, pipes,
//     devices, files that are too large, half-written or another job's (TestHostileSentinelsAreRefused). No file
//     outside the workspace is opened, whatever links are in it (TestLinksLeadNowhere).
//   - No process id is stored, read or compared (TestNoProcessIDs).
//   - A time in a file is kept as data. How old it is, and what follows, is the monitor's to judge.
//
// The package decides nothing, starts no process and reads no clock.
package sentinel
