package cli

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
	"lessor/internal/table"
)

type (
	// runFunc is what a cobra command runs.
	runFunc = func(*cobra.Command, []string) error
	// decode reads flags and arguments, before the server is called.
	decode[Q any] = func(*cobra.Command, []string) (Q, error)
	// call asks the server. A method expression like (*client.Client).Job is one.
	call[Q, A any] = func(*client.Client, context.Context, Q) (A, error)
	// render prints an answer for people.
	render[A any] = func(t *table.Table, answer A, now time.Time)
	// none is the question of a call that has no arguments.
	none struct{}
)

// show returns a command that reads the command line, calls the server and prints the answer.
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

// display prints an answer: with --json in the shape of the API, otherwise as text.
func display[A any](a *app, answer A, write render[A]) error {
	if a.json {
		return a.printJSON(answer)
	}
	t := a.table()
	write(t, answer, time.Now())
	if t.Empty() {
		a.note("%s", cmp.Or(t.None, "none"))
	}
	return t.Flush()
}

// noArgs decodes a command line without arguments.
func noArgs(*cobra.Command, []string) (none, error) { return none{}, nil }

// nameArg decodes one argument, which is a name.
func nameArg(_ *cobra.Command, args []string) (string, error) { return args[0], nil }

// optionalArg decodes one argument that may be missing; then it is "".
func optionalArg(_ *cobra.Command, args []string) (string, error) { return strings.Join(args, ""), nil }

// idArg decodes one argument, which is an id.
func idArg[T ~struct{ lessor.UUID }](what string) decode[T] {
	return func(_ *cobra.Command, args []string) (T, error) { return parseID[T](what, args[0]) }
}

// plain makes a call of a method without arguments.
func plain[A any](ask func(*client.Client, context.Context) (A, error)) call[none, A] {
	return func(c *client.Client, ctx context.Context, _ none) (A, error) { return ask(c, ctx) }
}

// accepted is the answer to a call that returns nothing.
type accepted struct {
	OK bool `json:"ok"`
}

// order makes a call of a method that returns nothing but an error.
func order[Q any](ask func(*client.Client, context.Context, Q) error) call[Q, accepted] {
	return func(c *client.Client, ctx context.Context, question Q) (accepted, error) {
		return accepted{true}, ask(c, ctx, question)
	}
}

// printWord shows a word as the answer to an order.
func printWord(word string) render[accepted] {
	return func(t *table.Table, _ accepted, _ time.Time) { t.Row(word) }
}

// each calls the server for every id, continues after a refusal, and prints each outcome. In JSON, list is the name of
// the answers; noun names the thing in errors.
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
				break // the next call would fail too
			}
			continue
		}
		answers = append(answers, answer)
		if !a.json {
			a.say("%s", table.Clean(id+" "+outcome))
		}
	}
	if a.json {
		errs = append(errs, a.printJSON(map[string][]A{list: answers}))
	}
	return errors.Join(errs...)
}
