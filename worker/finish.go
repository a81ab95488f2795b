package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"lessor"
)

// The bounds of one round of ends: a batch has at most 1000 leases and stays well below 16 MiB, and a limited number
// of releases is sent at once.
const (
	maxEnds     = 1000
	maxEndBytes = 4 << 20
	maxReleases = 16
)

// end says how a lease ends: with a release or with a completion.
type end struct {
	release bool
	delay   time.Duration   // of a release
	status  string          // completed, failed, cancelled or waiting
	result  json.RawMessage // of completed
	err     string          // of failed
	final   bool            // the failure is not retried
	asks    *askError       // of waiting
	again   bool            // the server refused the first end; this one reports that

	unstarted bool // a release before the handler started, which is no interruption
}

// single reports whether e has a call of its own.
func (e end) single() bool { return e.release || e.asks != nil }

func (e end) size() int { return 200 + len(e.result) + len(e.err) }

func (e end) completion(worker *string) lessor.Completion {
	d := lessor.Completion{WorkerID: worker, Status: &e.status, Result: e.result}
	if e.err != "" {
		d.Error, d.Retryable = &e.err, new(!e.final)
	}
	if e.asks != nil {
		return e.asks.completion(d)
	}
	return d
}

// finishLocked queues the end of l, which is sent until it is acknowledged or the lease is over.
func (w *Worker) finishLocked(l *lease, e end) {
	l.phase, l.end = ending, e
	w.ends = append(w.ends, l)
	if w.isMine(l) {
		poke(w.ending)
	}
}

// finishLoop sends ends in rounds: while one round is on its way, the next ends gather.
func (w *Worker) finishLoop(ctx context.Context) {
	failures := 0
	for {
		ends, releases := w.takeEnds(w.isMine)
		if len(ends)+len(releases) == 0 {
			select {
			case <-w.ending:
				continue
			case <-ctx.Done():
				return
			}
		}
		var all sync.WaitGroup
		all.Go(func() { ends = w.sendEnds(ctx, ends) })
		releases = w.sendReleases(ctx, releases)
		all.Wait()
		if len(ends)+len(releases) == 0 {
			failures = 0
			continue
		}
		w.mu.Lock()
		w.ends = slices.Concat(ends, releases, w.ends)
		w.mu.Unlock()
		failures++
		if !pauseAbout(ctx, lessor.RetryPause(failures)) {
			return
		}
	}
}

// isMine reports whether the finishing loop sends the end of l: in a rush the completions are part of turns.
func (w *Worker) isMine(l *lease) bool { return l.end.single() || !w.rush.on }

// takeEnds takes the oldest of the wanted ends that fit into one round.
func (w *Worker) takeEnds(wanted func(*lease) bool) (ends, releases []*lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, size := 0, 0
	w.ends = slices.DeleteFunc(w.ends, func(l *lease) bool {
		if n == maxEnds || size >= maxEndBytes || !wanted(l) {
			return false
		}
		n++
		size += l.end.size()
		if l.end.single() {
			releases = append(releases, l)
		} else {
			ends = append(ends, l)
		}
		return true
	})
	return ends, releases
}

// sendEnds sends many ends in one call and returns those to be sent again.
func (w *Worker) sendEnds(ctx context.Context, ends []*lease) (again []*lease) {
	if len(ends) == 0 {
		return nil
	}
	answers, err := w.cfg.Client.CompleteAll(ctx, w.cfg.ID, completions(ends))
	if err == nil && len(answers) != len(ends) {
		err = errAnswers
	}
	for i, l := range ends {
		switch {
		case err == nil:
			again = w.ended(again, l, answers[i].Err)
		case refused(err): // one of the ends is the cause, which only single calls can show
			again = w.ended(again, l, w.cfg.Client.Complete(ctx, l.id(), l.end.completion(&w.cfg.ID)))
		default:
			again = w.ended(again, l, err)
		}
	}
	return again
}

func completions(ends []*lease) []lessor.LeaseCompletion {
	body := make([]lessor.LeaseCompletion, len(ends))
	for i, l := range ends {
		d := l.end.completion(nil)
		body[i] = lessor.LeaseCompletion{
			LeaseID: new(l.id().String()), Status: d.Status, Result: d.Result, Error: d.Error, Retryable: d.Retryable,
		}
	}
	return body
}

// sendReleases sends ends that have a call of their own, maxReleases at a time, and returns those to be sent again.
func (w *Worker) sendReleases(ctx context.Context, releases []*lease) (again []*lease) {
	var all sync.WaitGroup
	var mu sync.Mutex
	slots := make(chan struct{}, maxReleases)
	for _, l := range releases {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			err := w.sendAlone(ctx, l)
			mu.Lock()
			defer mu.Unlock()
			again = w.ended(again, l, err)
		})
	}
	all.Wait()
	return again
}

// sendAlone sends a release or a question.
func (w *Worker) sendAlone(ctx context.Context, l *lease) error {
	if l.end.asks != nil {
		return w.cfg.Client.Complete(ctx, l.id(), l.end.completion(&w.cfg.ID))
	}
	r := lessor.Release{WorkerID: &w.cfg.ID, DelayMS: new(l.end.delay.Milliseconds())}
	if l.end.unstarted {
		r.Reason = new(lessor.ReleaseUndelivered)
	}
	return w.cfg.Client.Release(ctx, l.id(), r)
}

// refused reports whether the server will never accept the call.
func refused(err error) bool {
	switch lessor.CodeOf(err) {
	case lessor.CodeInvalidRequest, lessor.CodeInvalidValue, lessor.CodePayloadTooLarge, lessor.CodeConflict:
		return true
	}
	return false
}

// ended processes the answer to the end of l, and adds l to again if the end must be sent once more.
func (w *Worker) ended(again []*lease, l *lease, err error) []*lease {
	switch {
	case err == nil:
	case over(err):
		w.log.Warn("A lease was over before its end was acknowledged: the job may run again",
			l.attrs("end", l.end.name(), "error", err)...)
	case !refused(err):
		return append(again, l)
	case l.end.again || l.end.release:
		w.log.Error("The server refuses the end of a lease, which will expire", l.attrs("error", err)...)
	default:
		w.log.Warn("The server refuses the end of a lease: the attempt fails",
			l.attrs("end", l.end.name(), "error", err)...)
		l.end = failed(fmt.Errorf("the server refused the result: %w", err), true)
		l.end.again = true
		return append(again, l)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forgetLocked(l)
	return again
}

func (e end) name() string {
	if e.release {
		return "released"
	}
	return e.status
}
