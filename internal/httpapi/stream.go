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
	records, err := c.api.scheduler.Subscribe(ctx, c.caller, ids.open(c.r.Header.Get("Last-Event-ID")))
	if err != nil {
		return heldErr(ctx, err)
	}
	c.w.Header().Set("Content-Type", "text/event-stream")
	c.w.WriteHeader(http.StatusOK)
	return c.follow(ctx, records, ids)
}

// follow sends records as they come.
func (c *call) follow(ctx context.Context, records <-chan scheduler.Streamed, ids readerIDs) error {
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	for text := []byte(": stream of records\n\n"); c.push(text) == nil; {
		select {
		case first, ok := <-records:
			if !ok {
				return nil
			}
			text = gather(first, records, ids)
		case <-alive.C:
			text = []byte(": alive\n\n")
		case <-ctx.Done():
			return nil
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

// maxGather bounds the bytes of one write.
const maxGather = 64 * kib

// gather writes a record and those that wait after it, so that a burst costs one write.
func gather(next scheduler.Streamed, records <-chan scheduler.Streamed, ids readerIDs) []byte {
	var b bytes.Buffer
	for {
		writeRecord(&b, next, ids)
		if b.Len() > maxGather {
			return b.Bytes()
		}
		select {
		case r, ok := <-records:
			if !ok {
				return b.Bytes()
			}
			next = r
		default:
			return b.Bytes()
		}
	}
}

// writeRecord writes one event, after a gap if records were left out.
func writeRecord(b *bytes.Buffer, r scheduler.Streamed, ids readerIDs) {
	if r.Gap {
		b.WriteString("event: gap\ndata: {}\n\n")
	}
	if r.Event.JobID.IsZero() {
		return
	}
	data, err := json.Marshal(r.Event, encoding)
	if err != nil {
		b.WriteString("event: gap\ndata: {}\n\n")
		return
	}
	b.WriteString("id: " + ids.seal(r.ID) + "\nevent: record\ndata: ")
	b.Write(data)
	b.WriteString("\n\n")
}
