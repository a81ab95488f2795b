package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// bench is one run of the program.
type bench struct {
	out, progress io.Writer
	folder        string // for temporary files
	size          size
	peers         bool
	missed        bool // a bound
}

// size says how much a run does. Bounds hold at the full size; smaller runs show that the program works.
type size int

const (
	fully size = iota
	quickly
	smoke // what `go test` runs: nothing is concluded from its figures
)

// of picks a count by the size of the run.
func (s size) of(full, quick, tiny int) int { return [...]int{full, quick, tiny}[s] }

// note says on standard error what is being done.
func (b *bench) note(format string, args ...any) {
	fmt.Fprintf(b.progress, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// setting says with which settings a table was made.
func (b *bench) setting(format string, args ...any) {
	fmt.Fprintf(b.out, "  "+format+"\n", args...)
}

// table prints rows under a head, aligned; cells are separated by "|".
func (b *bench) table(head string, rows []string) {
	w := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, line := range append([]string{head}, rows...) {
		fmt.Fprintln(w, "  "+strings.ReplaceAll(line, "|", "\t")+"\t")
	}
	_ = w.Flush() // to a terminal or a file; what it lost is seen
	fmt.Fprintln(b.out)
}

// atLeast and atMost hold a figure to its bound.
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

// machine says where the figures come from. The load tells whether somebody else used the machine.
func (b *bench) machine() {
	fmt.Fprintf(b.out, "# machine\n\n")
	b.setting("%s %s/%s, %d cores, %s", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), time.Now().Format(time.DateTime))
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		b.setting("load average at the start: %s", strings.Join(strings.Fields(string(load))[:3], " "))
	}
}
