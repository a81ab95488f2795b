package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

func main() {
	if err := command(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(1)
	}
}

// command runs one world (-seed) or many (-seeds).
func command(args []string, out io.Writer) error {
	f := flag.NewFlagSet("sim", flag.ContinueOnError)
	f.SetOutput(out)
	seed := f.Uint64("seed", 0, "live the world of this `number` alone, and print what happens")
	first := f.Uint64("first", 1, "the `number` of the first world of many")
	seeds := f.Uint64("seeds", 2000, "how many worlds to live")
	length := f.Duration("for", time.Hour, "how long each world lives")
	storm := f.Bool("storm", false, "have several nodes, little silence, and seven times as many faults")
	limit := f.Duration("time", 0, "begin no new world after this `time`; 0 = none is too late")
	nodes := f.Int("nodes", 0, "with -seed: nodes; 0 = as the seed says")
	workers := f.Int("workers", 0, "with -seed: workers; 0 = as the seed says")
	tenants := f.Int("tenants", 0, "with -seed: tenants; 0 = as the seed says")
	faults := f.String("faults", "seed", "with -seed: the `kinds` of faults, with commas; seed = as the seed says")
	quiet := f.Bool("q", false, "with -seed: print the end only")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *seed == 0 {
		s := &soak{
			out: out, next: *first, last: *first + *seeds - 1, length: *length, storm: *storm,
			began: time.Now(), limit: *limit,
		}
		return s.run()
	}
	p := PlanOf(*seed, *length, *storm)
	for _, set := range []struct{ to, from *int }{{&p.Nodes, nodes}, {&p.Workers, workers}, {&p.Tenants, tenants}} {
		if *set.from != 0 {
			*set.to = *set.from
		}
	}
	if *faults != "seed" {
		p.Faults = nil
		for _, name := range strings.FieldsFunc(*faults, func(r rune) bool { return r == ',' }) {
			p.Faults = append(p.Faults, Fault(name))
		}
	}
	progress := out
	if *quiet {
		progress = nil
	}
	start := time.Now()
	counts, trace, failure := Run(p, progress)
	_, _ = fmt.Fprintf(out, "%s\n%v: %+v, trace %x\n",
		p.Command(), time.Since(start).Round(time.Millisecond), counts, trace)
	if failure != nil {
		return failure
	}
	return nil
}

// soak runs many worlds, one on each processor, until one of them breaks a promise.
type soak struct {
	length, limit time.Duration
	storm         bool
	began         time.Time

	mu         sync.Mutex
	out        io.Writer
	next, last uint64
	lived      int
	time       time.Duration
	sum        counts
	failure    *BrokenError
}

func (s *soak) run() error {
	// worlds make much garbage and keep little: rare collections save a third of the time
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for seed, ok := s.take(); ok; seed, ok = s.take() {
				p := PlanOf(seed, s.length, s.storm)
				counts, _, failure := Run(p, nil)
				s.add(p, counts, failure)
			}
		})
	}
	all.Wait()
	s.report()
	if s.failure != nil {
		return s.failure
	}
	return nil
}

// take returns the seed of the next world; false if there is none.
func (s *soak) take() (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next > s.last || s.failure != nil || s.limit != 0 && time.Since(s.began) > s.limit {
		return 0, false
	}
	s.next++
	return s.next - 1, true
}

// add counts a world that was run, and reduces one that failed.
func (s *soak) add(p Plan, c counts, failure *BrokenError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lived++
	s.time += p.Length
	s.sum.add(c)
	if failure != nil && s.failure == nil {
		_, _ = fmt.Fprintf(s.out, "seed %d: %v\n%s\n", p.Seed, failure, p.Command())
		p, s.failure = Shrink(p, failure)
		_, _ = fmt.Fprintf(s.out, "the same in small: %v\n%s\n", s.failure, p.Command())
	}
	if s.lived%100 == 0 {
		s.report()
	}
}

func (s *soak) report() {
	_, _ = fmt.Fprintf(s.out, "%d worlds, %v in all, in %v: %+v\n",
		s.lived, s.time, time.Since(s.began).Round(time.Second), s.sum)
}

func (c *counts) add(o counts) {
	c.Steps, c.Calls, c.Commits, c.Grants = c.Steps+o.Steps, c.Calls+o.Calls, c.Commits+o.Commits, c.Grants+o.Grants
	c.Ends, c.Brakes, c.Faults = c.Ends+o.Ends, c.Brakes+o.Brakes, c.Faults+o.Faults
}
