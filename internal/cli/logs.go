package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
)

func (a *app) jobsLogsCommand() *cobra.Command {
	var follow bool
	var attempt int64
	cmd := &cobra.Command{
		Use:   "logs ID",
		Short: "Show what a job printed, also while it runs",
		Long: `Logs prints what the last attempt of a job wrote to its standard output and its standard error, as far as
the server keeps it, to the same stream each. An attempt that was given back, as by a deploy, and goes on is printed
from its beginning. On a terminal logs leaves out control characters other than colours.`,
		Example: `  lessor jobs logs 0196a1b2-…
  lessor jobs logs 0196a1b2-… -f`,
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false,
		"print what comes until the job has ended, with further attempts")
	wholeVar(cmd, &attempt, "attempt", 0, "show this attempt (default the last)")
	cmd.RunE = a.run(func(cmd *cobra.Command, args []string) error {
		id, err := parseID[lessor.JobID]("job", args[0])
		if err != nil {
			return err
		}
		c, err := a.client()
		if err != nil {
			return err
		}
		empty, err := a.printOutput(cmd.Context(), c, id, lessor.OutputQuery{Attempt: attempt}, follow)
		switch {
		case err != nil || !empty:
		case attempt != 0:
			a.note("the server has no output of attempt %d; `lessor jobs events %s` lists the attempts", attempt, id)
		default:
			a.note("the server has no output of this job")
		}
		return err
	})
	return cmd
}

// printOutput prints both streams of a job's output, beside each other, and reports whether both were empty.
func (a *app) printOutput(
	ctx context.Context, c *client.Client, id lessor.JobID, q lessor.OutputQuery, follow bool,
) (empty bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var both sync.WaitGroup
	errs, printed := make([]error, 2), make([]bool, 2)
	for i, s := range []struct {
		name string
		to   io.Writer
	}{{lessor.Stdout, a.Out}, {lessor.Stderr, a.Err}} {
		both.Go(func() {
			q := q
			q.Stream = s.name
			if printed[i], errs[i] = a.printStream(ctx, c, id, q, follow, s.to); errs[i] != nil {
				cancel()
			}
		})
	}
	both.Wait()
	empty = !printed[0] && !printed[1]
	if errs[0] == nil || errs[1] != nil && errors.Is(errs[0], context.Canceled) {
		return empty, errs[1] // the first was ended because of it
	}
	return empty, errs[0]
}

func (a *app) printStream(
	ctx context.Context, c *client.Client, id lessor.JobID, q lessor.OutputQuery, follow bool, to io.Writer,
) (printed bool, err error) {
	if isTerminal(to) {
		to = &harmless{to: to}
	}
	var fence, next int64
	attempt := 0
	for out, err := range c.AllOutput(ctx, id, q, follow) {
		if err != nil {
			return printed, err
		}
		if out.Fence != fence {
			next = 0
		}
		switch {
		case out.Fence != fence && out.Attempt == attempt:
			a.note("attempt %d goes on under a new lease (%s)", out.Attempt, out.Stream)
		case out.Fence != fence && (fence != 0 || follow && out.Attempt > 1): // earlier attempts may have ended before
			a.note("attempt %d begins (%s)", out.Attempt, out.Stream)
		}
		if out.Offset > next {
			a.note("%d bytes of %s were not kept", out.Offset-next, out.Stream)
		}
		attempt, fence, next, printed = out.Attempt, out.Fence, out.NextOffset, true
		if _, err := to.Write(out.Data); err != nil {
			return printed, fmt.Errorf("print output: %w", err)
		}
	}
	return printed, nil
}

// harmless writes text to a terminal, with colours (ESC [ … m) and without any other control sequence: a command's
// output must not move the cursor or answer in a person's name.
type harmless struct {
	to      io.Writer
	pending []byte // a sequence or a character whose end has not come
}

// maxSequence is the length of the longest sequence that is waited for.
const maxSequence = 64

func (h *harmless) Write(p []byte) (int, error) {
	text := slices.Concat(h.pending, p)
	h.pending = nil
	safe := make([]byte, 0, len(text))
	for len(text) > 0 {
		n, keep := sequence(text)
		if n == 0 && len(text) < maxSequence {
			h.pending = append(h.pending, text...)
			break
		}
		if n = max(n, 1); keep {
			safe = append(safe, text[:n]...)
		}
		text = text[n:]
	}
	if _, err := h.to.Write(safe); err != nil {
		return 0, err
	}
	return len(p), nil
}

// sequence returns the length of the character or control sequence at the beginning of text, 0 if its end is missing,
// and whether it is harmless.
func sequence(text []byte) (n int, keep bool) {
	switch c := text[0]; {
	case c == '\n' || c == '\t' || c == '\r':
		return 1, true
	case c == 0x1b:
		return escape(text)
	case c < ' ' || c == 0x7f:
		return 1, false
	case !utf8.FullRune(text):
		return 0, false
	}
	r, n := utf8.DecodeRune(text)
	return n, r != utf8.RuneError && (r < 0x80 || r > 0x9f) // the controls behind ASCII are sequences too
}

func escape(text []byte) (n int, keep bool) {
	if len(text) < 2 {
		return 0, false
	}
	if text[1] != '[' {
		return 2, false
	}
	for i := 2; i < len(text); i++ {
		if c := text[i]; c >= 0x40 && c <= 0x7e {
			// With other parameters, ESC [ … m is no colour: it asks the terminal, or sets how it sends keys.
			return i + 1, c == 'm' && len(bytes.Trim(text[2:i], "0123456789;:")) == 0
		}
	}
	return 0, false
}
