package httpapi

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"lessor/internal/scheduler"
)

// keepAlive is the time between comments in a silent stream. Proxies cut connections after 30 to 60 s of silence.
const keepAlive = 15 * time.Second

// events streams all records as server-sent events until the client leaves or the server stops.
func (c *call) events() error {
	ctx, release, err := c.hold(c.api.streams, "stream", 0)
	if err != nil {
		return err
	}
	defer release()
	ids := c.api.eventIDs.of(c.caller)
	follower, err := c.api.scheduler.Subscribe(ctx, c.caller, ids.open(c.r.Header.Get("Last-Event-ID")))
	if err != nil {
		return heldErr(ctx, err)
	}
	c.boundUnread()
	c.w.Header().Set("Content-Type", "text/event-stream")
	c.w.WriteHeader(http.StatusOK)
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	var b bytes.Buffer
	for text := []byte(": stream of records\n\n"); text != nil && c.push(text) == nil; {
		b.Reset()
		text = awaitText(ctx, &b, follower, ids, alive.C)
	}
	return nil
}

// maxUnread is what the kernel is asked to keep of a stream for a client that does not read; Linux takes twice as much.
// Unasked, it would keep megabytes.
const maxUnread = 64 * kib

func (c *call) boundUnread() {
	if conn, ok := c.r.Context().Value(connKey{}).(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = conn.SetWriteBuffer(maxUnread)
	}
}

// awaitText returns what is to be sent next: records, in b, or a comment if there are none for a while. It returns nil
// when the stream has ended.
func awaitText(
	ctx context.Context, b *bytes.Buffer, f *scheduler.Follower, ids readerIDs, alive <-chan time.Time,
) []byte {
	for ctx.Err() == nil { // a slow reader always has something to take
		if gather(b, f.Take, ids); b.Len() > 0 {
			return b.Bytes()
		}
		select {
		case _, open := <-f.Arrived():
			if !open {
				return nil
			}
		case <-alive:
			return []byte(": alive\n\n")
		case <-ctx.Done():
		}
	}
	return nil
}

// push sends text now. A client that does not read it in time is dropped.
func (c *call) push(text []byte) error {
	rc := http.NewResponseController(c.w)
	_ = rc.SetWriteDeadline(time.Now().Add(writeTime))
	if _, err := c.w.Write(text); err != nil {
		return err
	}
	return rc.Flush()
}

// The bounds of one write: a burst costs one write, and a client that does not read it holds no more than that.
const (
	maxGather = 32 * kib
	maxTake   = 32 // records
)

// gather writes the records that have come to b.
func gather(b *bytes.Buffer, take func(most int) []scheduler.Streamed, ids readerIDs) {
	for b.Len() < maxGather {
		records := take(maxTake)
		if len(records) == 0 {
			return
		}
		for _, r := range records {
			writeRecord(b, r, ids)
		}
	}
}

// writeRecord writes one event.
func writeRecord(b *bytes.Buffer, r scheduler.Streamed, ids readerIDs) {
	data, err := json.Marshal(r.Event, encoding)
	if r.Gap || err != nil {
		b.WriteString("event: gap\ndata: {}\n\n")
		return
	}
	b.WriteString("id: " + ids.seal(r.ID) + "\nevent: record\ndata: ")
	b.Write(data)
	b.WriteString("\n\n")
}
