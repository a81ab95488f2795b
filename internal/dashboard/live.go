package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"lessor"
	"lessor/internal/httpapi"
)

// liveHeader marks a request for the changing part of a page.
const liveHeader = "X-Lessor-Live"

const (
	// liveEvery is how often a page may change, liveAtLeast how often it does when nothing is committed here: other nodes work too.
	liveEvery   = time.Second
	liveAtLeast = 5 * time.Second
	liveWrite   = 10 * time.Second // a browser that does not take a line in this time is gone
	maxStreams  = 500
)

var errStreams = &lessor.Error{Code: lessor.CodeRateLimited, Detail: "too many pages are open", RetryAfter: 5 * time.Second}

// follow tells a page when to ask for its changing part again. It does not send what changed: a page asks for that with its own
// address and rights, and one answer serves all who look at the same.
func (v *visit) follow() error {
	if v.streams.Add(1) > maxStreams {
		v.streams.Add(-1)
		return errStreams
	}
	defer v.streams.Add(-1)
	v.w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(v.w)
	_ = rc.SetReadDeadline(time.Time{}) // a recorder in a test has none
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	ctx, stop := v.r.Context(), httpapi.Stopping(v.r.Context())
	seen, told := v.changes.Load(), time.Now()
	for text := "retry: 2000\n\n"; ; {
		_ = rc.SetWriteDeadline(time.Now().Add(liveWrite))
		if _, err := fmt.Fprint(v.w, text); err != nil || rc.Flush() != nil {
			return nil
		}
		for text = ""; text == ""; {
			select {
			case <-ctx.Done():
				return nil
			case <-stop.Done():
				return nil
			case now := <-tick.C:
				if n := v.changes.Load(); n != seen || now.Sub(told) >= liveAtLeast {
					seen, told, text = n, now, "event: changed\ndata: {}\n\n"
				}
			}
		}
	}
}

// cache keeps the changing parts of pages for as long as they may be old.
type cache struct {
	mu  sync.Mutex
	all map[string]*part
}

// part is the changing part of one page, made by the first who asks.
type part struct {
	since time.Time
	made  chan struct{} // closed when body and err are there
	body  []byte
	err   error
}

const maxParts = 512

var errUnmade = errors.New("the part was not made")

// get returns the part with this key, begun at most liveEvery ago.
func (c *cache) get(key string, render func() ([]byte, error)) ([]byte, error) {
	p, mine := c.part(key, time.Now())
	if mine {
		defer close(p.made)
		p.err = errUnmade // for those who wait, should it panic
		p.body, p.err = render()
		return p.body, p.err
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
	if c.all == nil || len(c.all) >= maxParts {
		c.all = map[string]*part{}
	}
	p = &part{since: now, made: make(chan struct{})}
	c.all[key] = p
	return p, true
}
