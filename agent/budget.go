package agent

import (
	"cmp"
	"errors"
	"fmt"
)

// Defaults of a Budget: enough for a long task, few enough to notice a model that runs in circles.
const (
	DefaultCalls  = 100
	DefaultTokens = 1_000_000
)

// maxConversation bounds the text of one conversation, in bytes: more fits into no model.
const maxConversation = 16 << 20

// maxCallsATurn bounds the tools that a model may call in one turn.
const maxCallsATurn = 64

// Errors that end a run.
var (
	// ErrBudgetSpent ends a run that has used all it may.
	ErrBudgetSpent = errors.New("budget is spent")
	// ErrDeadline ends a run that took too long.
	ErrDeadline = errors.New("deadline has passed")
)

// Budget bounds what one run may use. The zero value is the default.
type Budget struct {
	// Calls is how often the model may be asked. Zero means DefaultCalls.
	Calls int
	// Tokens is how many it may use, in and out together, as the provider counts them; the call that passes the bound
	// is the last. Zero means DefaultTokens.
	Tokens int
}

// spent is what a run has used.
type spent struct{ calls, tokens, bytes int }

// check says whether another call is within the budget.
func (b Budget) check(s spent) error {
	switch {
	case s.calls >= cmp.Or(b.Calls, DefaultCalls):
		return fmt.Errorf("%w: too many model calls", ErrBudgetSpent)
	case s.tokens >= cmp.Or(b.Tokens, DefaultTokens):
		return fmt.Errorf("%w: too many tokens", ErrBudgetSpent)
	case s.bytes > maxConversation:
		return fmt.Errorf("%w: the conversation is too long", ErrBudgetSpent)
	}
	return nil
}
