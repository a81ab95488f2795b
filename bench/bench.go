package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

// bench is one run of the program.
type bench struct {
	out, progress io.Writer
	folder        string // for temporary files
	size          size
	peers         bool
	full          bool   // ten million queued jobs
	axis          string // what grows; "" = everything
	missed        bool   // a bound
	write         string // the folder for the comparison with peers; "" = none
}

// size is the extent of a run. Bounds hold at the full size; smaller runs show that the program works.
type size int

const (
	fully size = iota
	quickly
	smoke // for `go test`, which ignores the figures
)

// of selects a count by the size of the run.
func (s size) of(full, quick, tiny int) int { return [...]int{full, quick, tiny}[s] }

// note reports progress on standard error.
func (b *bench) note(format string, args ...any) {
	fmt.Fprintf(b.progress, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// setting prints a setting under which a table was made.
func (b *bench) setting(format string, args ...any) {
	fmt.Fprintf(b.out, "  "+format+"\n", args...)
}

// table prints rows under a head, aligned; cells are separated by "|".
func (b *bench) table(head string, rows []string) {
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, line := range append([]string{head}, rows...) {
		fmt.Fprintln(w, "  "+strings.ReplaceAll(line, "|", "\t")+"\t")
	}
	_ = w.Flush() // to a terminal or a file, where a loss is visible
	fmt.Fprintln(b.out)
}

// atLeast and atMost compare a figure with its bound.
func (b *bench) atLeast(what string, got, bound float64) {
	b.verdict(got >= bound, fmt.Sprintf("%s: %.2f, at least %.2f", what, got, bound))
}

func (b *bench) atMost(what string, got, bound float64) {
	b.verdict(got <= bound, fmt.Sprintf("%s: %.2f, at most %.2f", what, got, bound))
}

func (b *bench) verdict(pass bool, what string) {
	word := "PASS"
	switch {
	case b.size == smoke:
		word = "(not judged)"
	case !pass:
		word = "FAIL"
		b.missed = true
	}
	fmt.Fprintf(b.out, "  %s  %s\n", word, what)
}

// machine prints the environment. The load average shows whether other programs used the machine.
func (b *bench) machine() {
	fmt.Fprintf(b.out, "# machine\n\n")
	b.setting("%s %s/%s, %d cores, %s", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0),
		time.Now().Format(time.DateTime))
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		b.setting("load average at the start: %s", strings.Join(strings.Fields(string(load))[:3], " "))
	}
}

// concurrently has n callers process the items 0 to count-1, each taking the next when it is done. The first error ends
// all of them.
func concurrently(ctx context.Context, n, count int, do func(ctx context.Context, caller, item int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var callers sync.WaitGroup
	for caller := range n {
		callers.Go(func() {
			for ctx.Err() == nil {
				item := int(next.Add(1)) - 1
				if item >= count {
					return
				}
				if err := do(ctx, caller, item); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	callers.Wait()
	return context.Cause(ctx)
}
