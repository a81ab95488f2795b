package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lessor"
)

// verb is what a call asked for.
type verb string

const (
	submit   verb = "submit"
	grant    verb = "grant"
	beat     verb = "heartbeat"
	complete verb = "complete"
	fail     verb = "fail"
	release  verb = "release"
	read     verb = "read"
	lose     verb = "lose" // not a call: the store may have gone back to an older state
)

// answer is what a caller knows of a call.
type answer string

const (
	done    answer = "done"    // it took effect
	known   answer = "known"   // the same submission had taken effect before
	refused answer = "refused" // the lease is over, or there is no such job
	nothing answer = "nothing" // the server says that nothing was changed, or was not reached
	unknown answer = "unknown" // the answer was lost: it may take effect at any time from its begin on
)

// call is one call about one job, as its caller saw it.
type call struct {
	caller     int
	key        string // the idempotency key of the job
	verb       verb
	answer     answer
	begin, end time.Duration // since the history began

	job    string
	lease  string
	fence  int64
	reason string       // of a refusal: how the lease ended
	cut    bool         // the server did not answer
	state  lessor.State // of a read
}

func (c call) String() string {
	return fmt.Sprintf("%8.3fs–%8.3fs %2d %-9s %-8s job %.8s lease %.8s fence %d %s%s",
		c.begin.Seconds(), c.end.Seconds(), c.caller, c.verb, c.answer, c.job, c.lease, c.fence, c.reason, c.state)
}

// history is every call that was made to real servers, with its begin and end.
type history struct {
	began    time.Time
	stepped  atomic.Bool // the times in records do not tell an order
	wentBack atomic.Bool // acknowledged changes may be lost, or were

	mu     sync.Mutex
	calls  []call
	odd    []string // what must not be, seen at once
	lost   [][2]time.Duration
	excess int // leases that ended because their worker did not get to run, or got the grant late
	missed int // leases that ended because every node that their worker called died, while others served
}

func newHistory() *history { return &history{began: time.Now()} }

func (h *history) now() time.Duration { return time.Since(h.began) }

func (h *history) add(calls ...call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, calls...)
}

func (h *history) violation(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.odd = append(h.odd, fmt.Sprintf("%.3fs ", h.now().Seconds())+fmt.Sprintf(format, args...))
}

// goesBack notes a time in which the store may have lost acknowledged changes.
func (h *history) goesBack(do func()) {
	h.wentBack.Store(true)
	begin := h.now()
	do()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = append(h.lost, [2]time.Duration{begin, h.now()})
}

// count returns how many calls of a kind there were.
func (h *history) count(v verb, answers ...answer) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.calls {
		for _, a := range answers {
			if c.verb == v && c.answer == a {
				n++
			}
		}
	}
	return n
}

// longestGap returns the longest time between two instants in which the servers accepted no call.
func (h *history) longestGap(from, to time.Duration) (longest time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var accepted []time.Duration
	for _, c := range h.calls {
		if (c.answer == known || c.answer == done) && from < c.end && c.end < to {
			accepted = append(accepted, c.end)
		}
	}
	slices.Sort(accepted)
	for _, at := range append(accepted, to) {
		longest, from = max(longest, at-from), at
	}
	return longest
}

// caller makes single HTTP calls, each to one server: nothing repeats them behind the history's back.
type caller struct {
	id      int
	h       *history
	servers []string // addresses
	http    *http.Client
	next    int
}

// patience is how long a caller waits for an answer: less than half of the ttl.
const patience = 1200 * time.Millisecond

func newCaller(id int, h *history, servers []string) *caller {
	return &caller{
		id: id, h: h, servers: servers, next: rand.IntN(100),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}},
	}
}

// do makes one call, and turns to the next server after a failure. The refusal is for known and refused answers.
func (c *caller) do(ctx context.Context, wait time.Duration, method, path string, in, out any) (answer, refusal) {
	server := c.servers[c.next%len(c.servers)]
	ctx, cancel := context.WithTimeout(ctx, patience+wait)
	defer cancel()
	a, r := c.try(ctx, method, "http://"+server+path, in, out)
	if a == unknown || a == nothing {
		c.next++
	}
	return a, r
}

// refusal is the part of a problem that the history needs.
type refusal struct {
	Code    lessor.Code `json:"code"`
	Detail  string      `json:"detail"`
	Reason  string      `json:"ended_reason"`
	Outcome string      `json:"outcome"`
}

func (c *caller) try(ctx context.Context, method, url string, in, out any) (answer, refusal) {
	body, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	resp, err := c.http.Do(r)
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return nothing, refusal{}
	}
	if err != nil {
		return unknown, refusal{}
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return unknown, refusal{}
	}
	if resp.StatusCode < 300 {
		if err := json.Unmarshal(raw, out); err != nil {
			c.h.violation("%s %s was answered %d with %q", method, url, resp.StatusCode, raw)
			return unknown, refusal{}
		}
		if resp.StatusCode == http.StatusOK {
			return known, refusal{}
		}
		return done, refusal{}
	}
	var p refusal
	if err := json.Unmarshal(raw, &p); err != nil {
		return unknown, refusal{} // not ours: a proxy's
	}
	switch {
	case p.Outcome == "unknown" || resp.StatusCode == http.StatusInternalServerError:
		return unknown, p
	case resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests:
		return nothing, p
	case resp.StatusCode == http.StatusNotFound:
		return refused, p
	}
	c.h.violation("%s %s was answered %d: %s", method, url, resp.StatusCode, raw)
	return unknown, p
}

// TestLongestGap: calls that were not accepted, and those outside of the time, do not count.
func TestLongestGap(t *testing.T) {
	h := newHistory()
	for at, a := range map[time.Duration]answer{1: done, 3: known, 4: unknown, 6: nothing, 8: known, 20: known} {
		h.add(call{answer: a, end: at})
	}
	for _, c := range []struct{ from, to, want time.Duration }{{0, 10, 5}, {0, 3, 2}, {8, 20, 12}, {9, 10, 1}} {
		if got := h.longestGap(c.from, c.to); got != c.want {
			t.Errorf("from %d to %d the longest gap is %d, want %d", c.from, c.to, got, c.want)
		}
	}
}
