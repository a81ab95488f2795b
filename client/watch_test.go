package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lessor"
)

func streamEvent(id int) string {
	return fmt.Sprintf("id: %d\nevent: job\ndata: {\"seq\":%d,\"to\":\"queued\",\"job_id\":%q}\n\n", id, id, jobA)
}

func TestWatchResumesAfterTheLastEntry(t *testing.T) {
	var resumed []string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		last := r.Header.Get("Last-Event-ID")
		resumed = append(resumed, last)
		switch last {
		case "":
			_, _ = io.WriteString(w, ": hello\n\n"+streamEvent(1)+streamEvent(2)+"id: 3\ndata: {\"cut")
		case "2":
			_, _ = io.WriteString(w, "id: 5\nevent: gap\ndata: {}\n\n"+streamEvent(6))
		default:
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	for e, err := range connect(t, s.URL).Watch(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %d %t", e.ID, e.Event.Seq, e.Gap))
		if e.ID == "6" {
			break
		}
	}
	if diff := cmp.Diff([]string{"1 1 false", "2 2 false", "5 0 true", "6 6 false"}, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"", "2"}, resumed); diff != "" {
		t.Errorf("resumed after (-want +got):\n%s", diff)
	}
}

// TestWatchWithoutAnEntryShowsAGap: a connection ends before its first entry, and nothing says where to continue.
func TestWatchWithoutAnEntryShowsAGap(t *testing.T) {
	connections := 0
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, ": hello\n\n")
		if connections++; connections > 1 {
			_, _ = io.WriteString(w, streamEvent(1))
		}
	})
	var got []string
	for e, err := range connect(t, s.URL).Watch(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, fmt.Sprintf("%s %t", e.ID, e.Gap)); e.ID == "1" {
			break
		}
	}
	if diff := cmp.Diff([]string{" true", "1 false"}, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestWatchGoesToTheNextServerAndEndsWithItsContext(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, streamEvent(1))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for e, err := range connect(t, gone(t), s.URL).Watch(ctx, "0") {
		if err != nil {
			t.Fatal(err)
		}
		if n++; e.Event.JobID != jobID(jobA) {
			t.Errorf("entry = %+v", e)
		}
		cancel()
	}
	if n != 1 {
		t.Errorf("%d entries", n)
	}
}

func TestWatchEndsWithARefusal(t *testing.T) {
	s := serve(t, say(http.StatusUnauthorized, `{"code":"unauthenticated"}`))
	var last error
	for _, err := range connect(t, s.URL).Watch(t.Context(), "") {
		last = err
	}
	if lessor.CodeOf(last) != lessor.CodeUnauthenticated || len(s.requests()) != 1 {
		t.Errorf("err = %v", last)
	}
}

func TestReadEventBoundsAndJoinsLines(t *testing.T) {
	r := bufio.NewReaderSize(strings.NewReader("retry: 5\n:\n\nid\ndata: a\r\ndata:b\n\n"), maxEventLine)
	e, err := readEvent(r)
	if err != nil || string(e.data) != "a\nb" {
		t.Errorf("event = %+v, err %v", e, err)
	}
	long := bufio.NewReaderSize(strings.NewReader("data: "+strings.Repeat("x", maxEventLine)+"\n\n"), maxEventLine)
	if _, err := readEvent(long); !errors.Is(err, errLongLine) {
		t.Errorf("a long line gave %v", err)
	}
	many := bufio.NewReaderSize(strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", 1<<18)+"\n", 6)+"\n"),
		maxEventLine)
	if _, err := readEvent(many); !errors.Is(err, errLongLine) {
		t.Errorf("many long lines gave %v", err)
	}
}

// TestWaitOutlastsServersThatAreAway: the job runs on, gets another attempt, and a server is away in between.
func TestWaitOutlastsServersThatAreAway(t *testing.T) {
	answers := []http.HandlerFunc{
		say(200, `{"job_id":"`+jobA+`","state":"running"}`), hangUp, say(503, unavailable), hangUp, hangUp, hangUp,
		hangUp,
		say(200, `{"job_id":"`+jobA+`","state":"failed","retry_at":"2026-02-06T20:10:00.000Z"}`),
		say(200, `{"job_id":"`+jobA+`","state":"completed"}`),
	}
	n := 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { n++; answers[n-1](w, r) })
	job, err := connect(t, s.URL).Wait(t.Context(), jobID(jobA))
	if err != nil || job.State != lessor.Completed {
		t.Errorf("waited for %s (%v), want completed", job.State, err)
	}
	if asked := s.requests(); len(asked) != len(answers) || !strings.Contains(asked[0], "?wait_ms=30000") {
		t.Errorf("asked %d times, want %d: %q", len(asked), len(answers), asked[0])
	}
	refusing := serve(t, say(404, `{"code":"job_not_found"}`))
	if _, err := connect(t, refusing.URL).Wait(t.Context(), jobID(jobA)); !errors.Is(err, lessor.ErrJobNotFound) {
		t.Errorf("a refused wait returned %v", err)
	}
}
