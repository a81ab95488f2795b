// Package printer sends what an attempt prints to the server: at most one call a second, each stream in order, again
// and again until the server has it. What is small rides on heartbeats. What the server would not keep is left out:
// the middle of a stream that grows faster than it can be sent. Packages worker and executor call it; it knows no
// handler and no command.
package printer

import (
	"context"
	"sync"
	"time"

	"lessor"
	"lessor/client"
)

// Stream is what was printed, as far as it is still there. Its methods may be called beside those that print.
type Stream interface {
	// Size is how many bytes were printed so far.
	Size() int64
	// Read copies bytes from an offset on into p and returns how many, and where they begin: later than the offset if
	// what is between is gone.
	Read(offset int64, p []byte) (start int64, n int)
	// Sent says that the bytes before an offset need not be kept.
	Sent(offset int64)
}

// Interval is the time between two calls.
const Interval = time.Second

// Printer sends the output of one attempt.
type Printer struct {
	client *client.Client
	lease  lessor.LeaseID
	worker string

	mu   sync.Mutex // held while a part is on its way: there is one at a time
	outs []*out
	most int                 // bytes of a call: fewer once a gateway before the server refused so many
	keep lessor.OutputAnswer // its OK says that a server took output: an older one would refuse it in a heartbeat
	off  error               // why nothing more is sent
}

type out struct {
	name string
	from Stream
	sent int64 // the server has what is before
}

// New returns a Printer for the attempt under a lease.
func New(c *client.Client, lease lessor.LeaseID, worker string) *Printer {
	return &Printer{
		client: c, lease: lease, worker: worker, most: lessor.MaxOutputCall,
		keep: lessor.OutputAnswer{HeadBytes: lessor.MaxOutputChunk, TailBytes: lessor.MaxOutputCall},
	}
}

// Add adds a stream, before the first call of another method.
func (p *Printer) Add(name string, from Stream) {
	p.outs = append(p.outs, &out{name: name, from: from})
}

// Run sends what was printed once per Interval, until ctx is done or the server wants no more. A call that failed is
// made again with the next.
func (p *Printer) Run(ctx context.Context) {
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := p.send(ctx); err != nil && final(err) {
			return
		}
	}
}

// Flush sends the rest of what was printed: when it returns nil, the server has all of it, or wants no more. It returns
// lessor.ErrLeaseNotFound if the lease is over, and any other error for another try.
func (p *Printer) Flush(ctx context.Context) error {
	for {
		more, err := p.send(ctx)
		switch {
		case over(err):
			return err
		case err != nil && final(err):
			return nil
		case err != nil || !more:
			return err
		}
	}
}

// Beat sends a heartbeat, with what was printed if that is little and nothing is on its way.
func (p *Printer) Beat(b lessor.Heartbeat, send func(lessor.Heartbeat) error) error {
	if !p.mu.TryLock() {
		return send(b)
	}
	defer p.mu.Unlock()
	waiting := int64(0)
	for _, o := range p.outs {
		waiting += o.from.Size() - o.sent
	}
	if waiting > lessor.MaxOutputBeat || !p.keep.OK || p.off != nil {
		return send(b)
	}
	chunks, _ := p.pending(lessor.MaxOutputBeat * len(p.outs))
	b.Output = chunks
	err := send(b)
	if err == nil {
		p.acknowledge(chunks)
	}
	return err
}

// send makes one call, if something was printed since the last, and reports whether there is more.
func (p *Printer) send(ctx context.Context) (more bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.off != nil {
		return false, p.off
	}
	chunks, size := p.pending(p.most)
	if size == 0 {
		return false, nil
	}
	answer, err := p.client.Print(ctx, p.lease, lessor.OutputReport{WorkerID: &p.worker, Chunks: chunks})
	switch {
	case lessor.CodeOf(err) == lessor.CodePayloadTooLarge && p.most > lessor.MaxOutputBeat:
		p.most /= 2
		return true, nil
	case err == nil && answer.TailBytes == 0:
		err = errOff
		fallthrough
	case err != nil && final(err):
		p.off = err
		return false, err
	case err != nil:
		return true, err
	}
	p.keep = answer
	p.acknowledge(chunks)
	return true, nil
}

// errOff is a refusal, so that it is final.
var errOff error = &lessor.Error{Code: lessor.CodeConflict, Detail: "the server keeps no output (output.tail is 0)"}

// pending returns what is to be sent next, with at most limit bytes, of which each stream has its share.
func (p *Printer) pending(limit int) (chunks []lessor.OutputChunk, size int) {
	for _, o := range p.outs {
		share := limit / len(p.outs)
		for from := o.sent; share > 0; {
			end := o.from.Size()
			if from >= p.keep.HeadBytes {
				from = max(from, end-p.keep.TailBytes)
			} else {
				end = min(end, p.keep.HeadBytes)
			}
			if from >= end {
				break
			}
			data := make([]byte, min(end-from, int64(share), lessor.MaxOutputChunk))
			start, n := o.from.Read(from, data)
			if n == 0 {
				break
			}
			chunks = append(chunks, lessor.OutputChunk{Stream: &o.name, Offset: &start, Data: data[:n]})
			from, share, size = start+int64(n), share-n, size+n
		}
	}
	return chunks, size
}

func (p *Printer) acknowledge(chunks []lessor.OutputChunk) {
	for _, k := range chunks {
		for _, o := range p.outs {
			if o.name == *k.Stream {
				o.sent = *k.Offset + int64(len(k.Data))
				o.from.Sent(o.sent)
			}
		}
	}
}

// over reports whether the lease is no longer ours.
func over(err error) bool {
	code := lessor.CodeOf(err)
	return code == lessor.CodeLeaseNotFound || code == lessor.CodeWorkerMismatch
}

// final reports whether another try would fail in the same way. A server that does not know the route is one of an
// older release.
func final(err error) bool {
	switch lessor.CodeOf(err) {
	case "", lessor.CodeUnavailable, lessor.CodeInternal, lessor.CodeRateLimited:
		return false
	default:
		return true
	}
}

// Buffer is a Stream in memory. It keeps what was not sent, at most two calls' worth: what is printed faster than
// it can be sent loses its oldest bytes.
type Buffer struct {
	mu    sync.Mutex
	start int64
	data  []byte
}

var _ Stream = (*Buffer)(nil)

// Write implements io.Writer. It never fails and never waits.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = append(b.data, p...)
	if len(b.data) > 2*lessor.MaxOutputCall { // seldom, because the rest is copied
		b.drop(len(b.data) - lessor.MaxOutputCall)
	}
	return len(p), nil
}

// drop forgets the first n bytes.
func (b *Buffer) drop(n int) {
	if n <= 0 {
		return
	}
	b.start += int64(n)
	b.data = append(b.data[:0:0], b.data[n:]...)
}

// Size implements Stream.
func (b *Buffer) Size() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.start + int64(len(b.data))
}

// Read implements Stream.
func (b *Buffer) Read(offset int64, p []byte) (int64, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	start := max(offset, b.start)
	if start-b.start >= int64(len(b.data)) {
		return start, 0
	}
	return start, copy(p, b.data[start-b.start:])
}

// Sent implements Stream.
func (b *Buffer) Sent(offset int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop(int(min(offset-b.start, int64(len(b.data)))))
}
