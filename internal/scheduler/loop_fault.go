package scheduler

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"time"

	"lessor"
	"lessor/internal/fault"
	"lessor/internal/rules"
)

// errPanicked is the answer to calls whose step panicked.
var errPanicked = errors.New("the scheduler met a fault of its own")

// maxFaults in faultWindow end the node's service for faultWindow: something panics again and again.
const (
	maxFaults   = 3
	faultWindow = time.Minute
)

// errFaults is the answer while the node does not serve because of faults. Clients turn to another node.
var errFaults = &lessor.Error{
	Code: lessor.CodeUnavailable, RetryAfter: time.Second,
	Detail: fmt.Sprintf("this node had %d internal faults in a minute and refuses all calls for another minute;"+
		" its log has them under \"fault\"", maxFaults),
}

// safely runs one step, and then rests. A panic is a fault of one batch: its calls are refused, the fold is rebuilt,
// and the process goes on, because it serves other leases.
func (l *loop) safely(do func() error) (wait time.Duration, err error) {
	l.linger = linger{}
	defer func() {
		if v := recover(); v != nil {
			err = l.recoverFrom(fault.Of(fault.Loop, v))
		}
		l.works = nil
		if err != nil {
			l.setStatus(l.now(), err)
			if clock := l.now(); clock.Sub(l.parked.sweptAt) >= retryStore {
				l.parked.sweep(clock, storeRefusal(err))
			}
			wait = retryStore
		}
	}()
	if err := do(); err != nil {
		return 0, err
	}
	wait = l.rest()
	if l.linger.calls > 0 {
		wait = min(wait, l.linger.wait)
	}
	return wait, nil
}

// recoverFrom refuses the calls of a step that panicked, and drops the fold that it may have changed. The store has
// rolled the transaction back.
func (l *loop) recoverFrom(f *fault.Fault) error {
	l.faults = append(l.faults, l.now())
	err := fmt.Errorf("%w: %w", errPanicked, f)
	for _, c := range l.pending { // await answers those that are durable
		if c.wait() != nil {
			l.works = append(l.works, c.w)
		}
	}
	l.pending = nil
	calls := 0
	for _, w := range l.works {
		calls += w.count()
		f.Calls = describe(f.Calls, w.all())
		l.refuse(w.all(), err)
	}
	l.parked.each(func(r *requestCall) {
		if r.state.Load() != callWaiting {
			l.parked.remove(r)
		}
	})
	l.dropFold()
	l.cfg.Fault(f)
	l.cfg.Observe(Stats{Calls: calls, Err: err})
	return err
}

// maxDescribed bounds how many calls of a batch, and how many jobs or leases of a call, a fault names.
const maxDescribed = 50

// describe adds what calls ask for. It leaves out what may be secret: payloads, results, keys, and all of a lease's id
// but what finds it in a log.
func describe(all []string, ops []op) []string {
	for _, o := range ops {
		if len(all) == maxDescribed {
			return append(all, "…")
		}
		all = append(all, describeCall(o))
	}
	return all
}

func describeCall(o op) string {
	switch c := o.(type) {
	case *submitCall:
		return listed("submit", c.specs, func(s *rules.Spec) string {
			return fmt.Sprintf("%+v due %s", s.Lane, s.RunAt)
		})
	case *beatCall:
		return listed("heartbeat", c.beats, func(b beat) string { return b.id.String()[:8] })
	case *endCall:
		return listed("end", c.ends, func(e ending) string { return e.id.String()[:8] + " " + string(e.end.Outcome) })
	case *requestCall:
		return listed(fmt.Sprintf("request by %q for %d", c.ask.Worker, c.ask.MaxLeases), c.ask.Types, strconv.Quote)
	case *changeCall:
		return "change: " + runtime.FuncForPC(reflect.ValueOf(c.fn).Pointer()).Name()
	case *readCall:
		return "read: " + runtime.FuncForPC(reflect.ValueOf(c.fn).Pointer()).Name()
	}
	return ""
}

func listed[T any](verb string, all []T, name func(T) string) string {
	names := []string{fmt.Sprintf("%s %d:", verb, len(all))}
	for _, one := range all[:min(len(all), maxDescribed)] {
		names = append(names, name(one))
	}
	return strings.Join(names, " ")
}

// restAfterFaults refuses all calls for a while if the last steps panicked too often. Nothing notes service meanwhile.
// If no other node serves, the floor moves at the return; so no lease ends because of the faults. It returns false if
// ctx is done.
func (l *loop) restAfterFaults(ctx context.Context) bool {
	if n := len(l.faults); n < maxFaults {
		return true
	} else if recent := l.faults[n-maxFaults:]; recent[maxFaults-1].Sub(recent[0]) > faultWindow {
		l.faults = recent
		return true
	}
	l.faults = nil
	l.parked.each(func(r *requestCall) { r.answer(errFaults) })
	l.parked = newParked()
	over := time.NewTimer(faultWindow)
	defer over.Stop()
	for {
		l.setStatus(l.now(), errFaults)
		select {
		case <-l.calls.Ready(1):
			l.refuse(sortCalls(l.calls.Take(batchLimit)).all(), errFaults)
		case <-over.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}
