package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"lessor"
	"lessor/internal/pause"
)

// Entry is one entry of the stream that Watch returns.
type Entry struct {
	// ID is the argument with which Watch continues after this entry.
	ID    string
	Event lessor.StreamEvent
	// Gap means that entries are missing at this place. Event is empty then.
	Gap bool
}

const (
	maxWatchPause = 5 * time.Second
	maxEventLine  = 1 << 20 // a record entry is small; its error text is at most 8 KiB
)

var errLongLine = errors.New("an event is too long")

// Watch returns the entries of all records as they are committed, after the entry with the id after, or from now on
// if after is empty. When the connection breaks, Watch connects again, if necessary to the next server, and continues
// after the last entry; entries that it could not get show as a Gap. It ends when ctx is done, or with an error when
// the server refuses.
func (c *Client) Watch(ctx context.Context, after string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		silent := 0  // consecutive connections without an entry
		met := false // a server has been connected
		for ctx.Err() == nil {
			place, base := c.servers.current()
			missed := met && after == "" // nothing says where to continue
			last, more, err := c.watchOnce(ctx, base, after, missed, yield)
			met = met || err == nil
			if !more {
				return
			}
			if again, _ := repeatable(err); err != nil && !again {
				yield(Entry{}, err)
				return
			}
			silent++
			if last != after {
				after, silent = last, 1
			}
			if err != nil {
				c.servers.leave(place)
			}
			if !pause.For(ctx, min(roundPause(silent, err)<<min(silent, 3), maxWatchPause)) {
				return
			}
		}
	}
}

// watchOnce reads one connection until it breaks. If entries may have been missed before, it begins with a Gap. It
// returns the id of the last entry and whether the caller wants more; err says why there was no connection.
func (c *Client) watchOnce(
	ctx context.Context, base, after string, missed bool, yield func(Entry, error) bool,
) (last string, more bool, err error) {
	header := http.Header{"Accept": {"text/event-stream"}}
	if after != "" {
		header.Set("Last-Event-Id", after)
	}
	stream, _, err := c.open(ctx, base, call{method: http.MethodGet, path: scheduler + "/events"}, header)
	if err != nil {
		return after, ctx.Err() == nil, err
	}
	defer stream.Close()
	if missed && !yield(Entry{Gap: true}, nil) {
		return after, false, nil
	}
	for r := bufio.NewReaderSize(stream, maxEventLine); ; {
		e, err := readEvent(r)
		if err != nil {
			return after, ctx.Err() == nil, nil
		}
		if e.id != "" {
			after = e.id
		}
		entry := Entry{ID: after, Gap: e.name == "gap"}
		if !entry.Gap {
			if err := json.Unmarshal(e.data, &entry.Event); err != nil {
				return after, true, fmt.Errorf("decode an event of %s: %w", base, err)
			}
		}
		if !yield(entry, nil) {
			return after, false, nil
		}
	}
}

// event is one event of a text/event-stream.
type event struct {
	id, name string
	data     []byte
}

// readEvent returns the next event that has data or is a gap. It skips comments, which keep the connection alive.
func readEvent(r *bufio.Reader) (event, error) {
	var e event
	for {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return event{}, errLongLine
		}
		if err != nil {
			return event{}, io.ErrUnexpectedEOF // an event ends with an empty line
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			if e.data != nil || e.name == "gap" {
				return e, nil
			}
			e = event{}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "id":
			e.id = string(value)
		case "event":
			e.name = string(value)
		case "data":
			if e.data != nil {
				e.data = append(e.data, '\n')
			}
			if len(e.data)+len(value) > maxEventLine {
				return event{}, errLongLine
			}
			e.data = append(append(make([]byte, 0, len(e.data)+len(value)+1), e.data...), value...)
		}
	}
}
