package lessor

import "time"

// The limits of what a worker may report. The server refuses more; client, worker and executor cut or refuse it first.
const (
	MaxMessage    = 500      // characters of a heartbeat's message
	MaxErrorText  = 8 << 10  // bytes of an attempt's error
	MaxCheckpoint = 64 << 10 // bytes of a checkpoint
	MaxDialog     = 8 << 10  // bytes of a question, of an answer, or of a message to a job
	MaxAppend     = 100      // journal entries of one call

	MaxChoices = 20                   // of a question
	MaxChoice  = 200                  // characters of a choice
	MaxAsked   = 365 * 24 * time.Hour // how long a question may wait for its answer
)

// The bounds of RetryPause: long enough for a server to restart, short enough for a heartbeat to arrive in time.
const (
	RetryFirst = 100 * time.Millisecond
	RetryMax   = time.Second
)

// RetryPause returns how long to wait after a number of failed tries in a row: RetryFirst, doubling up to RetryMax.
// Callers vary it at random, so that they do not all return at the same moment.
func RetryPause(failures int) time.Duration {
	return min(RetryFirst<<min(max(failures-1, 0), 10), RetryMax)
}

// ExtendOn says what keeps the lease of a running job alive. The zero value means ExtendOnProgress.
type ExtendOn string

const (
	// ExtendOnProgress extends a lease only while the work shows that it moves. The job of work that hangs goes to
	// another worker.
	ExtendOnProgress ExtendOn = "progress"
	// ExtendOnLife extends a lease as long as the work has not ended. It is for work that cannot show progress; work
	// that hangs keeps its lease until its process ends or its max_runtime_s is over.
	ExtendOnLife ExtendOn = "life"
)
