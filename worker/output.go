package worker

import (
	"context"
	"io"
	"sync"
	"time"

	"lessor"
	"lessor/internal/printer"
)

// output is what an attempt prints.
type output struct {
	once   sync.Once
	buffer printer.Buffer
	flush  func() // stops the sending and sends the rest; nil if nothing was ever printed
}

const (
	// flushTime bounds how long the end of an attempt waits for the rest of its output, within a third of its ttl.
	flushTime = 10 * time.Second
	// flushLate is how long after the kill grace that may be in a worker that stops, which waits for twice as long.
	flushLate = drainSlack / 2
)

// Output returns a writer for what people may want to see of the attempt while it runs: `lessor jobs logs` and the
// dashboard show it as its stdout. Writing never waits and never fails; the worker sends what was written once per
// second, and the rest when the handler has returned. The server keeps the beginning and the end of a long output. To
// write is no beat. Several goroutines may write, until the handler returns.
func (j *Job[T]) Output() io.Writer {
	if j.lease == nil {
		return io.Discard
	}
	return j.worker.output(j.lease)
}

func (w *Worker) output(l *lease) io.Writer {
	l.output.once.Do(func() {
		p := printer.New(w.cfg.Client, l.id(), w.cfg.ID)
		p.Add(lessor.Stdout, &l.output.buffer)
		ctx, stop := context.WithCancel(context.Background())
		var sending sync.WaitGroup
		sending.Go(func() { p.Run(ctx) })
		l.output.flush = func() {
			most := w.beginFlush(l)
			stop()
			sending.Wait()
			w.flush(l, p, most)
		}
	})
	return &l.output.buffer
}

// beginFlush notes that the handler of l has returned, so that the time for its output is not taken for the handler's,
// and returns how long that may take. In a worker that stops it must leave time for the end.
func (w *Worker) beginFlush(l *lease) (most time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.phase = flushing
	most = min(flushTime, time.Duration(l.grant.Lease.TTLMS)*time.Millisecond/3)
	if !w.stopping || l.stuck { // nobody waits for one that is stuck
		return most
	}
	left := w.cfg.KillGrace + flushLate
	if !l.stopped.isZero() {
		left -= l.stopped.until(w.now())
	}
	return min(most, left)
}

// flush sends the rest of an attempt's output before its end is sent: afterwards the server takes no more.
func (w *Worker) flush(l *lease, p *printer.Printer, most time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	for failures := 1; ; failures++ {
		err := p.Flush(ctx)
		if err == nil || over(err) {
			return
		}
		if !pauseAbout(ctx, max(lessor.RetryPause(failures), retryAfter(err))) {
			w.log.Warn("The rest of an attempt's output is lost", l.attrs("error", err)...)
			return
		}
	}
}
