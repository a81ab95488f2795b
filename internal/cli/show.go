package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
)

type (
	// runFunc is what a cobra command runs.
	runFunc = func(*cobra.Command, []string) error
	// decode reads flags and arguments. It fails before the server is called.
	decode[Q any] = func(*cobra.Command, []string) (Q, error)
	// call asks the server; a method of the client is one.
	call[Q, A any] = func(*client.Client, context.Context, Q) (A, error)
	// render prints an answer for people.
	render[A any] = func(t table, answer A, now time.Time)
	// none is the question of a call that needs none.
	none struct{}
)

// show returns a command in three steps: read the command line, call the server, print the answer. With --json the
// answer is printed in the shape of the API.
func show[Q, A any](a *app, read decode[Q], ask call[Q, A], write render[A]) runFunc {
	return a.run(func(cmd *cobra.Command, args []string) error {
		question, err := read(cmd, args)
		if err != nil {
			return err
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		answer, err := ask(c, cmd.Context(), question)
		if err != nil {
			return err
		}
		return display(a, answer, write)
	})
}

// display prints an answer: JSON with --json, else text.
func display[A any](a *app, answer A, write render[A]) error {
	if a.json {
		return a.printJSON(answer)
	}
	t := newTable(a.Out)
	write(t, answer, time.Now())
	return t.flush()
}

// noArgs decodes a command line that says nothing.
func noArgs(*cobra.Command, []string) (none, error) { return none{}, nil }

// nameArg decodes the one argument as it is.
func nameArg(_ *cobra.Command, args []string) (string, error) { return args[0], nil }

// optionalArg decodes the argument, "" if there is none.
func optionalArg(_ *cobra.Command, args []string) (string, error) { return strings.Join(args, ""), nil }

// idArg decodes the one argument as an id.
func idArg[T ~struct{ lessor.UUID }](what string) decode[T] {
	return func(_ *cobra.Command, args []string) (T, error) { return parseID[T](what, args[0]) }
}

// plain is a call that has no question.
func plain[A any](ask func(*client.Client, context.Context) (A, error)) call[none, A] {
	return func(c *client.Client, ctx context.Context, _ none) (A, error) { return ask(c, ctx) }
}

// accepted is the answer to a call that has no other.
type accepted struct {
	OK bool `json:"ok"`
}

// order is a call that is only accepted or refused.
func order[Q any](ask func(*client.Client, context.Context, Q) error) call[Q, accepted] {
	return func(c *client.Client, ctx context.Context, question Q) (accepted, error) {
		return accepted{true}, ask(c, ctx, question)
	}
}

// said prints what was done by an order.
func said(word string) render[accepted] {
	return func(t table, _ accepted, _ time.Time) { t.row(word) }
}

// each calls the server for every id, goes on after a refusal, and prints each outcome. In JSON the answers are the list
// with that name; noun is what an error calls the thing.
func each[A any](a *app, ids []string, list, noun string, ask func(*client.Client, string) (A, string, error)) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	var errs []error
	answers := []A{}
	for _, id := range ids {
		answer, outcome, err := ask(c, id)
		if err != nil {
			errs = append(errs, subjectError{noun + " " + id, err})
			if exitCode(err) == exitFault {
				break // the next would fail alike
			}
			continue
		}
		answers = append(answers, answer)
		if !a.json {
			a.say("%s", clean(id+" "+outcome))
		}
	}
	if a.json {
		errs = append(errs, a.printJSON(map[string][]A{list: answers}))
	}
	return errors.Join(errs...)
}
