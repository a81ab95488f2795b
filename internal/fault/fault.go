// Package fault keeps a panic from ending the process, because the leases of others live in it. A panic becomes a
// Fault: an error that has its stack and names its place, which node logs and counts.
//
// The package catches panics of goroutines that handle input from outside. Those that mean a broken program, at
// its start, stay panics.
package fault

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"lessor/internal/pause"
)

// Places are where faults are caught, for the label of a metric.
const (
	Loop      = "loop"      // the scheduler's loop, and the answers of its commits
	Sample    = "sample"    // the busy rating, and the exchange of workers between nodes
	Lanes     = "lanes"     // the search for lanes that nobody uses
	HTTP      = "http"      // a handler of the API or of a page
	Recovery  = "recovery"  // the monitor of a workspace
	Cleanup   = "cleanup"   // the removal of folders
	Dashboard = "dashboard" // charts, cache and bulk operations
	Alerts    = "alerts"    // the sender to the webhook
	Tokens    = "tokens"    // the list of tokens
	Traces    = "traces"    // the sender of spans
)

// Places lists all places.
func Places() []string {
	return []string{Loop, Sample, Lanes, HTTP, Recovery, Cleanup, Dashboard, Alerts, Tokens, Traces}
}

// Fault is a panic that was caught.
type Fault struct { //nolint:errname // fault is the word for it, in metrics and logs too
	Place string
	Value any
	Stack []byte
	Calls []string // what was under way, without payloads and secrets: what is needed to repeat the fault
}

func (f *Fault) Error() string { return fmt.Sprintf("panic: %v", f.Value) }

// Of returns the fault of a value that was recovered. A fault of a goroutine that a Group passed on keeps its stack.
func Of(place string, recovered any) *Fault {
	if f, passedOn := recovered.(*Fault); passedOn {
		f.Place = place
		return f
	}
	return &Fault{Place: place, Value: recovered, Stack: debug.Stack()}
}

// Try calls do and returns its error, or the fault that it caught, which it also reports; report may be nil.
func Try(place string, report func(*Fault), do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			f := Of(place, v)
			if err = f; report != nil {
				report(f)
			}
		}
	}()
	return do()
}

// restart is the pause before Keep runs something again: a fault that comes at once must not fill a log or a processor.
const restart = 5 * time.Second

// Keep runs something until it returns, and again after each panic, until ctx is done.
func Keep(ctx context.Context, place string, report func(*Fault), run func(context.Context)) {
	for Try(place, report, func() error { run(ctx); return nil }) != nil && pause.For(ctx, restart) {
	}
}

// Group is a sync.WaitGroup that passes the first panic of its goroutines on to the one that waits for them.
type Group struct {
	// Cancel is called at a panic; nil = the others go on.
	Cancel func()

	all   sync.WaitGroup
	once  sync.Once
	fault *Fault
}

// Go calls do in a new goroutine.
func (g *Group) Go(do func()) {
	g.all.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				g.once.Do(func() { g.fault = Of("", v) })
				if g.Cancel != nil {
					g.Cancel()
				}
			}
		}()
		do()
	})
}

// Wait returns when all goroutines have ended, and panics if one of them did.
func (g *Group) Wait() {
	g.all.Wait()
	if g.fault != nil {
		panic(g.fault)
	}
}
