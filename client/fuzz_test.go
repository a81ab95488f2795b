package client

import (
	"bufio"
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzAnswer reads an answer of a server by the scanner. What the scanner accepts, encoding/json reads as the same.
func FuzzAnswer(f *testing.F) {
	for i, text := range []string{
		`{"lease":{"lease_id":"0194e4c8-7b1a-7c3d-8e4f-a1b2c3d4e5f6","fence":1},` +
			`"job":{"type":"x","payload":{"a":[1]}}}`,
		`{"jobs":[{"type":"x","tags":["a"],"progress":0.5,"question":{"id":"1","text":"?"}}]}`,
		`{"type":"x","priority":"high","created_at":"2026-02-06T20:10:00.123Z","error":null}`,
		`{"ok":true,"expires_at":null,"messages":[{"seq":1,"text":"\ud800"}]}`,
		`{"results":[{"lease_id":"0194e4c8-7b1a-7c3d-8e4f-a1b2c3d4e5f6","code":"lease_not_found"}]}`,
		`{"complete":[],"heartbeat":null,"request":{"denied":true,"retry_after_ms":1e3}}`,
		`{"numbers":[1,2],"ok":true}`,
	} {
		f.Add(uint8(i), []byte(text))
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		agreeing := []func(failing, []byte) bool{
			agree[requestAnswer], agree[jobsAnswer], agree[jobAnswer], agree[beatAnswer], agree[resultsAnswer],
			agree[turnAnswer], agree[journalAnswer],
		}
		agreeing[int(which)%len(agreeing)](t, b)
	})
}

// FuzzEvents reads a stream of events: each is bounded, and read again from its own text it is the same.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("id: 1\nevent: job\ndata: {\"seq\":1}\n\n: alive\n\nid: 2\nevent: gap\ndata: {}\n\n"))
	f.Add([]byte("retry: 5\n:\n\nid\ndata: a\r\ndata:b\n\n"))
	f.Add([]byte("event: gap\n\ndata\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := bufio.NewReaderSize(bytes.NewReader(stream), maxEventLine)
		for e, err := readEvent(r); err == nil; e, err = readEvent(r) {
			text := "id: " + e.id + "\nevent: " + e.name + "\n"
			for line := range bytes.SplitSeq(e.data, []byte("\n")) {
				text += "data: " + string(line) + "\n"
			}
			again, err := readEvent(bufio.NewReaderSize(bytes.NewReader([]byte(text+"\n")), maxEventLine))
			if err != nil || again.id != e.id || again.name != e.name || !bytes.Equal(again.data, e.data) ||
				len(e.data) > 2*maxEventLine {
				t.Errorf("the event %q is read back as %q (%v)", e, again, err)
			}
			var entry Entry
			_ = json.Unmarshal(e.data, &entry.Event) // refused or read
		}
	})
}
