package dashboard

import (
	"fmt"
	"net/http"
	"time"

	"lessor"
	"lessor/internal/httpapi"
)

// liveHeader marks a request for the changing part of a page.
const liveHeader = "X-Lessor-Live"

const (
	// liveEvery is the least time between changes of a page, liveAtLeast the most: other nodes may commit without a
	// commit here.
	liveEvery   = time.Second
	liveAtLeast = 5 * time.Second
	liveWrite   = 10 * time.Second // a browser that does not read a line in this time is gone
	maxStreams  = 1000             // one tenant gets at most half of them
)

var errStreams = &lessor.Error{
	Code: lessor.CodeRateLimited, Detail: "too many pages are open", RetryAfter: 5 * time.Second,
}

// follow sends an event when a page should read its changing part again. It does not send the part itself: the page
// reads that with its own address and rights, and one rendering serves all visitors of the page.
func (v *visit) follow() error {
	if !v.streams.Enter(v.caller.Tenant, 1) {
		return errStreams
	}
	defer v.streams.Leave(v.caller.Tenant, 1)
	v.w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(v.w)
	_ = rc.SetReadDeadline(time.Time{}) // fails only for a recorder in a test
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	ctx, stop := v.r.Context(), httpapi.Stopping(v.r.Context())
	seen, sentAt := v.changes.Load(), time.Now()
	const changed = "event: changed\ndata: {}\n\n"
	for text := "retry: 2000\n\n"; ; {
		_ = rc.SetWriteDeadline(time.Now().Add(liveWrite))
		if _, err := fmt.Fprint(v.w, text); err != nil || rc.Flush() != nil {
			return nil
		}
		if text == changed && !v.stays() {
			return nil // the page reads again, and will be refused with the reason
		}
		for text = ""; text == ""; {
			select {
			case <-ctx.Done():
				return nil
			case <-stop.Done():
				return nil
			case now := <-tick.C:
				if n := v.changes.Load(); n != seen || now.Sub(sentAt) >= liveAtLeast || !v.stays() {
					seen, sentAt, text = n, now, changed
				}
			}
		}
	}
}
