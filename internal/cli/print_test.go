package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"lessor"
	"lessor/client"
)

func TestTimesAreShownAsDistances(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	for in, want := range map[lessor.Instant]string{
		0: "-", 1_000_000: "now", 1_000_500: "in 500ms", 1_059_990: "in 60s", 999_000: "now",
		253_402_300_799_000: "in over 292 years",
	} {
		if got := until(in, now); got != want {
			t.Errorf("until(%d) = %q, want %q", in, got, want)
		}
	}
	if got := age(0, now) + age(997_000, now); got != "-3s" {
		t.Errorf("age gave %q", got)
	}
}

func TestExitCodes(t *testing.T) {
	refused := &lessor.Error{Code: lessor.CodeConflict}
	for _, tt := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{refused, 1},
		{deniedError{}, 1},
		{refusedError{errors.New("x")}, 1},
		{fmt.Errorf("wrapped: %w", refused), 1},
		{usagef("x"), 2},
		{&lessor.Error{Code: lessor.CodeUnavailable}, 3},
		{&lessor.Error{Code: lessor.CodeInternal}, 3},
		{&client.UnreachableError{Err: errors.New("x")}, 3},
		{context.Canceled, 3},
		{errors.New("disk"), 3},
		{errors.Join(refused, nil), 1},
		{errors.Join(refused, errors.New("disk")), 3},
		{errors.Join(usagef("x"), refused), 2},
	} {
		if got := exitCode(tt.err); got != tt.want {
			t.Errorf("exitCode(%v) = %d, want %d", tt.err, got, tt.want)
		}
	}
}

func TestUnknownOutcomeIsReported(t *testing.T) {
	text := explain(&client.UnreachableError{Server: "http://s", MayHaveArrived: true, Err: errors.New("EOF")})
	if !strings.Contains(text, "may have been received") || !strings.Contains(text, "http://s (EOF)") {
		t.Error(text)
	}
}

func TestInterruptedCommandSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	(&app{IO: IO{Err: &out}}).report(ctx, fmt.Errorf("x: %w", context.Canceled))
	if out.String() != "lessor: interrupted\n" {
		t.Errorf("%q", out.String())
	}
}
