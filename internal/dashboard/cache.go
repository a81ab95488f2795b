package dashboard

import (
	"context"
	"errors"
	"sync"
	"time"
)

// The bounds of the cache. A part that does not fit is sent to the visitors who wait for it, and not kept.
const (
	maxParts     = 512
	maxPartBytes = 32 << 20
)

// cache keeps the changing parts of pages for liveEvery.
type cache struct {
	mu    sync.Mutex
	all   map[string]*part
	bytes int // size of all bodies
}

// part is the changing part of one page. The first request renders it.
type part struct {
	since time.Time
	made  chan struct{} // closed when body and err are set
	body  []byte
	err   error
}

var errUnmade = errors.New("the part was not made")

// get returns the part with this key, which is at most liveEvery old.
func (c *cache) get(key string, render func() ([]byte, error)) ([]byte, error) {
	p, mine := c.part(key, time.Now())
	if mine {
		defer close(p.made)
		p.err = errUnmade // for the requests that wait, in case render panics
		body, err := render()
		c.keep(key, p, body, err)
		return body, err
	}
	<-p.made
	if p.err != nil {
		return render() // the first visitor may have left
	}
	return p.body, nil
}

// part returns the part with this key, and whether the caller must render it.
func (c *cache) part(key string, now time.Time) (p *part, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.all[key]; p != nil && now.Sub(p.since) < liveEvery {
		return p, false
	}
	c.drop(now)
	p = &part{since: now, made: make(chan struct{})}
	if c.all == nil {
		c.all = map[string]*part{}
	}
	if len(c.all) < maxParts {
		c.all[key] = p
	}
	return p, true
}

// keep sets the body of a part. The part stays in the cache if there was no error and there is room.
func (c *cache) keep(key string, p *part, body []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.body, p.err = body, err; c.all[key] != p {
		return
	}
	if err != nil || c.bytes+len(body) > maxPartBytes {
		delete(c.all, key)
		return
	}
	c.bytes += len(body)
}

// expire drops old parts until ctx is done, so that nothing is kept for pages without visitors.
func (c *cache) expire(ctx context.Context) {
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			c.mu.Lock()
			c.drop(now)
			c.mu.Unlock()
		}
	}
}

// drop removes the parts that are too old.
func (c *cache) drop(now time.Time) {
	for key, p := range c.all {
		if now.Sub(p.since) >= liveEvery {
			delete(c.all, key)
			c.bytes -= len(p.body)
		}
	}
}
