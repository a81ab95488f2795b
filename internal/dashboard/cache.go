package dashboard

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"
)

// The bounds of the cache. A part that does not fit is sent to the visitors who wait for it, and not kept.
const (
	maxParts     = 512
	maxPartBytes = 32 << 20
	// partsKept is how long a part is kept: until the pages that show it have asked for the next one.
	partsKept = liveAtLeast + 5*time.Second
)

// cache keeps the changing parts of pages.
type cache struct {
	mu    sync.Mutex
	all   map[string]*part
	bytes int // size of all parts
}

// part is the changing part of one page. The first request renders it.
type part struct {
	since   time.Time
	commits uint64        // the number of commits before it was rendered
	made    chan struct{} // closed when the fields below are set
	err     error
	lines   []string
	version string
	before  string // the version that changed starts from; "-" = none
	bytes   int    // its size, once it is kept

	whole, changed func() []byte // compressed answers, made when the first page asks for them
}

var errUnmade = errors.New("the part was not made")

// get returns the part with this key. It is at most liveEvery old, or liveAtLeast if there was no commit since.
func (c *cache) get(key string, commits uint64, render func() ([]byte, error)) (*part, error) {
	p, old, mine := c.part(key, commits, time.Now())
	if !mine {
		<-p.made
		if p.err == nil {
			return p, nil
		}
		p, old = &part{}, nil // the first visitor may have left
	} else {
		defer close(p.made)
	}
	p.err = errUnmade // for the requests that wait, in case render panics
	body, err := render()
	if err == nil {
		p.fill(body, old)
	}
	p.err = err
	if mine {
		c.keep(key, p, len(body))
	}
	return p, err
}

// fill sets the content of a part. old is the part before it, if it is known.
func (p *part) fill(body []byte, old *part) {
	p.version, p.before = versionOf(body), "-"
	p.lines = strings.Split(string(body), "\n")
	p.whole = sync.OnceValue(func() []byte { return pack(liveAnswer{p.version, []any{string(body)}}) })
	if old != nil {
		p.before = old.version
		lines := old.lines
		p.changed = sync.OnceValue(func() []byte { return pack(liveAnswer{p.version, pieces(lines, p.lines)}) })
	}
}

// part returns the part with this key. If the caller must render it, mine is true, and old is the part before it, nil
// if there is none.
func (c *cache) part(key string, commits uint64, now time.Time) (p, old *part, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old = c.all[key]
	if old != nil {
		age := now.Sub(old.since)
		if age < liveEvery || age < liveAtLeast && old.commits == commits {
			return old, nil, false
		}
		select {
		case <-old.made:
		default: // it takes longer than a second
			return old, nil, false
		}
	}
	p = &part{since: now, commits: commits, made: make(chan struct{})}
	c.remove(key)
	if c.all == nil {
		c.all = map[string]*part{}
	}
	if len(c.all) < maxParts {
		c.all[key] = p
	}
	return p, old, true
}

// keep keeps a part that was made, if there was no error and there is room.
func (c *cache) keep(key string, p *part, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[key] != p {
		return
	}
	if p.err != nil || c.bytes+bytes > maxPartBytes {
		delete(c.all, key)
		return
	}
	p.bytes = bytes
	c.bytes += bytes
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
			for key, p := range c.all {
				if now.Sub(p.since) >= partsKept {
					c.remove(key)
				}
			}
			c.mu.Unlock()
		}
	}
}

// remove drops a part.
func (c *cache) remove(key string) {
	if p := c.all[key]; p != nil {
		delete(c.all, key)
		c.bytes -= p.bytes
	}
}
