package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lessor/worker"
)

// ErrRunAgain is the error by which Inner.Uncertain has the call made again.
var ErrRunAgain = errors.New("run the call again")

// UncertainCall is a call that an earlier attempt began and did not finish.
type UncertainCall struct {
	ToolCall
	// Key names the call in the journal of the job.
	Key string
	// Cuts counts how often it was cut off: more than once if it was run again.
	Cuts int
}

// The answers of a person that have a meaning of their own. Any other answer is what the model is told.
const (
	AnswerAgain   = "again"
	AnswerUnknown = "unknown"
)

// maxQuoted bounds the arguments of a call in a question, which has 8 KiB.
const maxQuoted = 4 << 10

// AskPerson returns a function for Inner.Uncertain that asks a person, with ask, the method Ask of the job: the run
// ends with the error of ask, which the handler returns, and the job waits without a lease. With the answer AnswerAgain
// the next attempt makes the call again, with AnswerUnknown it tells the model that the outcome is unknown, as it does
// if nobody answers within the time (zero means 7 days), and any other answer is the result of the call.
func AskPerson(
	ask func(context.Context, worker.Question) (string, error), within time.Duration,
) func(context.Context, UncertainCall) (string, error) {
	return func(ctx context.Context, c UncertainCall) (string, error) {
		text := fmt.Sprintf("The program stopped during a call of the tool %s, which may have taken effect or not "+
			"(%s, stopped %d times). Answer %q to make the call again, %q if you cannot tell, "+
			"or the result of the call.\n\n%s",
			c.Name, c.Key, c.Cuts, AnswerAgain, AnswerUnknown, cut(string(c.Arguments), maxQuoted))
		answer, err := ask(ctx, worker.Question{Text: text, Within: within})
		switch {
		case errors.Is(err, worker.ErrUnanswered), err == nil && answer == AnswerUnknown:
			return outcomeUnknown, nil
		case err == nil && answer == AnswerAgain:
			return "", ErrRunAgain
		}
		return answer, err
	}
}
