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
	// liveEvery is how often a page may change, liveAtLeast how often it does when nothing is committed here: other nodes work too.
	liveEvery   = time.Second
	liveAtLeast = 5 * time.Second
	liveWrite   = 10 * time.Second // a browser that does not take a line in this time is gone
	maxStreams  = 1000             // of which one tenant gets at most half
)

var errStreams = &lessor.Error{Code: lessor.CodeRateLimited, Detail: "too many pages are open", RetryAfter: 5 * time.Second}

// follow tells a page when to ask for its changing part again. It does not send what changed: a page asks for that with its own
// address and rights, and one answer serves all who look at the same.
func (v *visit) follow() error {
	if !v.streams.Enter(v.caller.Tenant, 1) {
		return errStreams
	}
	defer v.streams.Leave(v.caller.Tenant, 1)
	v.w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(v.w)
	_ = rc.SetReadDeadline(time.Time{}) // a recorder in a test has none
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	ctx, stop := v.r.Context(), httpapi.Stopping(v.r.Context())
	seen, told := v.changes.Load(), time.Now()
	const changed = "event: changed\ndata: {}\n\n"
	for text := "retry: 2000\n\n"; ; {
		_ = rc.SetWriteDeadline(time.Now().Add(liveWrite))
		if _, err := fmt.Fprint(v.w, text); err != nil || rc.Flush() != nil {
			return nil
		}
		if text == changed && !v.stays() {
			return nil // the page has been told to ask again, and will see why
		}
		for text = ""; text == ""; {
			select {
			case <-ctx.Done():
				return nil
			case <-stop.Done():
				return nil
			case now := <-tick.C:
				if n := v.changes.Load(); n != seen || now.Sub(told) >= liveAtLeast || !v.stays() {
					seen, told, text = n, now, changed
				}
			}
		}
	}
}
