package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// follow opens the stream and returns a function that reads its next block, up to the empty line.
func (s *served) follow(ctx context.Context, edit ...func(*http.Request)) func() string {
	s.t.Helper()
	resp, err := s.send(ctx, "GET", scheduling+"/events", "", edit...)
	if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("open the stream: %v %v", resp, err)
	}
	r := bufio.NewReader(resp.Body)
	return func() string {
		var b strings.Builder
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return "end"
			}
			if line == "\n" {
				return b.String()
			}
			b.WriteString(line)
		}
	}
}

// record reads the JSON of an event: record block.
func record(t *testing.T, block string) (id string, e lessor.StreamEvent) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(block), "\n")
	if len(lines) != 3 || lines[1] != "event: record" || !strings.HasPrefix(lines[0], "id: ") ||
		!strings.HasPrefix(lines[2], "data: ") {
		t.Fatalf("not a record: %q", block)
	}
	if err := json.Unmarshal([]byte(lines[2][6:]), &e); err != nil {
		t.Fatalf("%v: %s", err, lines[2])
	}
	return lines[0][4:], e
}

func TestStreamShowsRecordsAsTheyAreWritten(t *testing.T) {
	serve(t, func(s *served) {
		t := s.t
		ctx, leave := context.WithCancel(t.Context())
		next := s.follow(ctx)
		if first := next(); !strings.HasPrefix(first, ":") {
			t.Errorf("the stream begins with %q, want a comment", first)
		}
		job := s.api("POST", "/jobs", `{"type":"x"}`, 201)["job_id"]
		id, e := record(t, next())
		if e.JobID.String() != job || e.To != lessor.Queued || e.Seq != 1 {
			t.Errorf("the record is %+v, want the submission of %s", e, job)
		}
		begin := time.Now()
		if got := next(); got != ": alive\n" || time.Since(begin) > keepAlive {
			t.Errorf("after %v of silence: %q, want a comment", time.Since(begin), got)
		}
		leave()
		synctest.Wait()
		if n := s.streams.Taken(); n != 0 {
			t.Errorf("%d streams are still counted after the client left", n)
		}
		s.api("POST", "/jobs", `{"type":"y"}`, 201)
		again := s.follow(t.Context(), header("Last-Event-ID", id))
		again()
		if _, e := record(t, again()); e.JobID.String() == job {
			t.Error("coming back shows what was seen before")
		}
	})
}

func TestStreamShowsATenantItsOwn(t *testing.T) {
	serve(t, func(s *served) {
		t := s.t
		next := s.follow(t.Context(), with(s.issue("viewer", tenantA)))
		next()
		s.api("POST", "/jobs", `{"type":"x","tenant_id":"`+tenantB+`"}`, 201)
		s.api("POST", "/jobs", `{"type":"x","tenant_id":"`+tenantA+`"}`, 201)
		if _, e := record(t, next()); e.TenantID.String() != tenantA {
			t.Errorf("tenant A sees a record of %s", e.TenantID)
		}
	})
}

func TestGapsAreReported(t *testing.T) {
	e := scheduler.Streamed{ID: 7, Event: lessor.StreamEvent{JobID: lessor.JobID{UUID: lessor.UUID{1}}}}
	ids := newEventIDs().of(scheduler.Caller{})
	later := e
	later.ID = 9
	records := []scheduler.Streamed{e, {Gap: true}, later}
	var text bytes.Buffer
	gather(&text, func(int) []scheduler.Streamed {
		next := records
		records = nil
		return next
	}, ids)
	got := text.String()
	want := []string{
		"id: " + ids.seal(7) + "\nevent: record\n",
		"\n\nevent: gap\ndata: {}\n\nid: " + ids.seal(9) + "\nevent: record\n",
	}
	at := 0
	for _, w := range want {
		i := strings.Index(got[at:], w)
		if i < 0 {
			t.Fatalf("%q is not in order in\n%s", w, got)
		}
		at += i
	}
	var b bytes.Buffer
	writeRecord(&b, e, ids)
	if strings.Count(b.String(), "\n\n") != 1 {
		t.Errorf("a record must be one block: %q", b.String())
	}
}

// A client that reads nothing is dropped after the time that one write may take, and its place is free again.
func TestStreamDropsAFollowerThatDoesNotRead(t *testing.T) {
	serve(t, func(s *served) {
		t := s.t
		conn, err := s.net.dial()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte("GET " + scheduling +
			"/events HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := s.streams.Taken(); n != 1 {
			t.Fatalf("%d streams are open, want 1", n)
		}
		time.Sleep(writeTime + time.Second)
		if n := s.streams.Taken(); n != 0 {
			t.Errorf("%d streams are open after %v without a read", n, writeTime)
		}
	})
}

// bufferedConn notes how large its kernel's buffer shall be.
type bufferedConn struct {
	net.Conn
	size int
}

func (c *bufferedConn) SetWriteBuffer(bytes int) error {
	c.size = bytes
	return nil
}

func TestKernelKeepsLittleOfAStream(t *testing.T) {
	serve(t, func(s *served) {
		client, server := net.Pipe()
		defer client.Close()
		conn := &bufferedConn{Conn: server}
		s.net.conns <- conn
		if _, err := client.Write([]byte("GET " + scheduling +
			"/events HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if conn.size != maxUnread {
			t.Errorf("the kernel may keep %d bytes of a stream, want %d", conn.size, maxUnread)
		}
	})
}
