package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/internal/config"
)

// maxInput bounds a payload or result from a file or standard input. No server accepts more.
const maxInput = 16 << 20

// duration is a flag like 90s, 2m or 7d.
type duration struct{ time.Duration }

func (d *duration) Set(s string) (err error) {
	d.Duration, err = config.ParseDuration(s)
	return err
}

func (d *duration) String() string {
	if d.Duration == 0 {
		return "0" // pflag then adds no default to the usage, which says what happens without the flag
	}
	return config.FormatDuration(d.Duration)
}
func (d *duration) Type() string { return "duration" }

// size is a flag like 64MiB.
type size struct{ config.Size }

func (s *size) Set(text string) (err error) {
	s.Size, err = config.ParseSize(text)
	return err
}

func (s *size) String() string {
	if s.Size == 0 {
		return "0" // as a duration
	}
	return s.Size.String()
}
func (s *size) Type() string { return "size" }

// readJSON reads a flag whose value is JSON, @FILE, or - for standard input.
func (a *app) readJSON(flag, value string) (json.RawMessage, error) {
	data := []byte(value)
	var err error
	if value == "-" {
		data, err = io.ReadAll(io.LimitReader(a.In, maxInput+1))
	} else if path, ok := strings.CutPrefix(value, "@"); ok {
		data, err = readFile(path)
	}
	switch {
	case err != nil:
		return nil, usagef("%s: %w", flag, err)
	case len(data) > maxInput:
		return nil, usagef("%s: is larger than 16 MiB", flag)
	case !json.Valid(data):
		return nil, usagef("%s: is not JSON; give JSON, @FILE or - for standard input", flag)
	}
	return data, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	return io.ReadAll(io.LimitReader(f, maxInput+1))
}

// relative reports whether a time is given as a distance from now.
func relative(value string) bool {
	return strings.HasPrefix(value, "+") || strings.HasPrefix(value, "-")
}

// parseDelay reads +DURATION or -DURATION.
func parseDelay(flag, value string) (time.Duration, error) {
	d, err := config.ParseDuration(value[1:])
	if err != nil {
		return 0, usagef("%s: %q %w", flag, value, err)
	}
	if value[0] == '-' {
		d = -d
	}
	return d, nil
}

// parseInstant reads an RFC 3339 time, or +DURATION or -DURATION from now. Errors name example as a distance.
func parseInstant(flag, value, example string, now time.Time) (string, error) {
	if relative(value) {
		d, err := parseDelay(flag, value)
		return lessor.At(now.Add(d)).String(), err
	}
	if _, err := time.Parse(time.RFC3339, value); err != nil {
		return "", usagef("%s: %q is neither a time like 2026-02-06T20:10:00Z nor a distance from now like %s",
			flag, value, example)
	}
	return value, nil
}

// parseID reads the id of a job, a lease and so on. The error says where ids are found, as for one that is unknown.
func parseID[T ~struct{ lessor.UUID }](what, s string) (T, error) {
	u, err := lessor.ParseUUID(s)
	if err == nil {
		return T{u}, nil
	}
	if next := nextStep(&lessor.Error{Code: lessor.Code(what + "_not_found")}); next != "" {
		return T{}, usagef("%s %q: %w; %s", what, s, err, next)
	}
	return T{}, usagef("%s %q: %w", what, s, err)
}

// tenantFlag reads --tenant; nil if it was not given.
func tenantFlag(s string) (*lessor.TenantID, error) {
	if s == "" {
		return nil, nil
	}
	id, err := parseID[lessor.TenantID]("--tenant", s)
	return &id, err
}

// given returns the value of a flag if it was set, otherwise nil.
func given[T any](cmd *cobra.Command, flag string, value T) *T {
	if !cmd.Flags().Changed(flag) {
		return nil
	}
	return &value
}

// milliseconds returns a duration flag in milliseconds if it was set, otherwise nil.
func milliseconds(cmd *cobra.Command, flag string, d duration) *int64 {
	return given(cmd, flag, d.Milliseconds())
}

var errWholeSeconds = errors.New("is not a whole number of seconds")

// seconds returns a duration flag in seconds if it was set, otherwise nil.
func seconds(cmd *cobra.Command, flag string, d duration) (*int64, error) {
	if d.Duration%time.Second != 0 {
		return nil, usageError{fmt.Errorf("--%s: %s %w", flag, d.String(), errWholeSeconds)}
	}
	return given(cmd, flag, int64(d.Seconds())), nil
}

// whole is a flag for a whole number, also if it is written as 3.0: JSON takes that for an integer too.
type whole[T int | int64] struct{ to *T }

func (w whole[T]) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 64)
	if f, _ := strconv.ParseFloat(s, 64); err != nil && f != 0 && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		n, err = int64(f), nil
	}
	*w.to = T(n)
	return err
}

func (w whole[T]) String() string {
	if w.to == nil { // pflag asks the zero value for the default
		return "0"
	}
	return strconv.FormatInt(int64(*w.to), 10)
}
func (w whole[T]) Type() string { return "int" }

// wholeVar adds a flag for a whole number.
func wholeVar[T int | int64](cmd *cobra.Command, to *T, flag string, def T, usage string) {
	*to = def
	cmd.Flags().Var(whole[T]{to}, flag, usage)
}

// choice is a flag that accepts one of some words, in capitals or not.
type choice struct {
	to    *string
	words []string
}

func (c choice) Set(s string) error {
	for _, w := range c.words {
		if strings.EqualFold(w, s) {
			*c.to = w
			return nil
		}
	}
	return errors.New("allowed are " + enumerate(c.words) + similar(s, c.words))
}

func (c choice) String() string {
	if c.to == nil { // pflag asks the zero value for the default
		return ""
	}
	return *c.to
}
func (c choice) Type() string { return "string" }

// oneOf adds a flag that accepts one of these words, lists them in its usage and completes them. The value of to is the
// default.
func oneOf[T ~string](cmd *cobra.Command, to *string, flag, usage string, words ...T) {
	c := choice{to: to}
	for _, w := range words {
		c.words = append(c.words, string(w))
	}
	cmd.Flags().Var(c, flag, usage+": "+enumerate(c.words))
	completes(cmd, flag, cobra.FixedCompletions(c.words, cobra.ShellCompDirectiveNoFileComp))
}

// enumerate lists words as "a, b or c".
func enumerate(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// similar returns a question that names the words like the typed one, to end an error; "" if there are none. Cobra
// knows what is alike, for commands. Numbers are not: 1 is no misspelt 11.
func similar(typed string, words []string) string {
	if _, err := strconv.Atoi(typed); err == nil {
		return ""
	}
	all := &cobra.Command{SuggestionsMinimumDistance: min(2, len(typed)/2)}
	for _, w := range words {
		all.AddCommand(&cobra.Command{Use: w, Run: func(*cobra.Command, []string) {}})
	}
	found := all.SuggestionsFor(typed)
	switch {
	case typed == "" || len(found) == 0:
		return ""
	case len(found) == 1:
		return "; did you mean " + found[0] + "?"
	}
	return "; did you mean " + enumerate(found) + "?"
}

// completes registers the completion of an existing flag.
func completes(cmd *cobra.Command, flag string, fn cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, fn); err != nil {
		panic(err)
	}
}

// require marks an existing flag as required.
func require(cmd *cobra.Command, flag string) {
	if err := cmd.MarkFlagRequired(flag); err != nil {
		panic(err)
	}
}

// completeFiles completes the names of files.
func completeFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}
