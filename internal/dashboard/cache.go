package dashboard

import (
	"context"
	"errors"
	"sync"
	"time"
)

// The bounds of the cache. A part counts with its body once it is made; what does not fit is shown to those who wait for it and
// not kept.
const (
	maxParts     = 512
	maxPartBytes = 32 << 20
)

// cache keeps the changing parts of pages for as long as they may be old.
type cache struct {
	mu    sync.Mutex
	all   map[string]*part
	bytes int // of the bodies in all
}

// part is the changing part of one page, made by the first who asks.
type part struct {
	since time.Time
	made  chan struct{} // closed when body and err are there
	body  []byte
	err   error
}

var errUnmade = errors.New("the part was not made")

// get returns the part with this key, begun at most liveEvery ago.
func (c *cache) get(key string, render func() ([]byte, error)) ([]byte, error) {
	p, mine := c.part(key, time.Now())
	if mine {
		defer close(p.made)
		p.err = errUnmade // for those who wait, should it panic
		body, err := render()
		c.keep(key, p, body, err)
		return body, err
	}
	<-p.made
	if p.err != nil {
		return render() // whoever made it may just have left
	}
	return p.body, nil
}

// part returns the part with this key, and whether the caller is to make it.
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

// keep gives a part its body. It stays for others if it was made and there is room.
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

// expire drops the parts that are old until ctx is done, so that nothing is kept for pages that nobody looks at any more.
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

// drop forgets the parts that are too old to be shown.
func (c *cache) drop(now time.Time) {
	for key, p := range c.all {
		if now.Sub(p.since) >= liveEvery {
			delete(c.all, key)
			c.bytes -= len(p.body)
		}
	}
}
