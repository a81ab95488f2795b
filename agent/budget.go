package agent

import (
	"cmp"
	"errors"
	"fmt"
)

// The defaults of a Budget: enough for a long task, and few enough to stop a model that repeats itself.
const (
	DefaultCalls  = 100
	DefaultTokens = 1_000_000
)

// maxConversation bounds the text of one conversation in bytes. No model accepts more.
const maxConversation = 16 << 20

// maxCallsATurn bounds the tool calls of one turn.
const maxCallsATurn = 64

// The errors that end a run.
var (
	// ErrBudgetSpent means that the run has used its budget.
	ErrBudgetSpent = errors.New("budget is spent")
	// ErrDeadline means that the run took too long.
	ErrDeadline = errors.New("deadline has passed")
)

// Budget bounds one run, over all attempts that it takes. The zero value takes all defaults.
type Budget struct {
	// Calls is the largest number of model calls. The default is DefaultCalls.
	Calls int
	// Tokens is the largest number of input and output tokens together, as the provider counts them. The call that
	// exceeds it is the last one. The default is DefaultTokens.
	Tokens int
	// Cost is the largest sum at the prices below, in the same currency. The call that exceeds it is the last one. The
	// default is no bound.
	Cost float64
	// InputPrice and OutputPrice are the prices of a million tokens.
	InputPrice, OutputPrice float64
}

// cost returns what tokens cost.
func (b Budget) cost(u Usage) float64 {
	return (float64(u.InputTokens)*b.InputPrice + float64(u.OutputTokens)*b.OutputPrice) / 1e6
}

// check returns an error if another call would exceed the budget of a conversation of size bytes.
func (b Budget) check(r Response, size int) error {
	switch {
	case r.Calls >= cmp.Or(b.Calls, DefaultCalls):
		return fmt.Errorf("%w: too many model calls", ErrBudgetSpent)
	case r.Usage.InputTokens+r.Usage.OutputTokens >= cmp.Or(b.Tokens, DefaultTokens):
		return fmt.Errorf("%w: too many tokens", ErrBudgetSpent)
	case b.Cost > 0 && r.Cost >= b.Cost:
		return fmt.Errorf("%w: too expensive", ErrBudgetSpent)
	case size > maxConversation:
		return fmt.Errorf("%w: the conversation is too long", ErrBudgetSpent)
	}
	return nil
}
