package agent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// ErrScriptOver is the error of Complete after the last step of a script.
var ErrScriptOver = errors.New("the script is over")

// Step is one answer of a scripted model.
type Step struct {
	Reply Reply
	Err   error
	// Takes is how long the answer takes. With Hangs it never arrives, and only the end of the context ends the call.
	// Neither beats.
	Takes time.Duration
	Hangs bool
}

// Scripted is a model that gives prepared answers, for tests of agents. Concurrent callers share the script.
type Scripted struct {
	mu        sync.Mutex
	steps     []Step
	questions []Question
}

// Script returns a model that gives these answers, one after another.
func Script(steps ...Step) *Scripted { return &Scripted{steps: steps} }

// Say returns a step that ends the conversation with a text.
func Say(text string) Step { return Step{Reply: Reply{Text: text}} }

// Use returns a step that calls a tool.
func Use(tool, arguments string) Step {
	return Step{Reply: Reply{Calls: []ToolCall{{ID: "call-" + tool, Name: tool, Arguments: []byte(arguments)}}}}
}

// Complete implements Adapter.
func (s *Scripted) Complete(ctx context.Context, q Question) (Reply, error) {
	step, err := s.next(q)
	if err != nil {
		return Reply{}, err
	}
	var due <-chan time.Time
	if !step.Hangs {
		timer := time.NewTimer(step.Takes)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
		return step.Reply, step.Err
	case <-ctx.Done():
		return Reply{}, ctx.Err()
	}
}

func (s *Scripted) next(q Question) (Step, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.questions = append(s.questions, Question{Turns: slices.Clone(q.Turns), Tools: q.Tools})
	if len(s.steps) == 0 {
		return Step{}, ErrScriptOver
	}
	step := s.steps[0]
	s.steps = s.steps[1:]
	return step, nil
}

// Questions returns the questions so far.
func (s *Scripted) Questions() []Question {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.questions)
}
