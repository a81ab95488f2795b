package printer

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/client"
)

// server takes output as a server does, or fails as the test says.
type server struct {
	mu    sync.Mutex
	got   map[string]map[int64][]byte
	calls int
	next  []int // statuses of the next calls; 0 takes the output and loses the answer
	tail  int64
	most  int64 // what a gateway before the server lets through; 0 = all
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.most > 0 && r.ContentLength > s.most {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	status := http.StatusOK
	if len(s.next) > 0 {
		status, s.next = s.next[0], s.next[1:]
	}
	if status > 299 {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"code":"` + map[int]string{503: "unavailable", 404: "lease_not_found"}[status] + `"}`))
		return
	}
	var report lessor.OutputReport
	if err := json.NewDecoder(r.Body).Decode(&report); err != nil {
		panic(err)
	}
	size := 0
	for _, k := range report.Chunks {
		if s.got[*k.Stream] == nil {
			s.got[*k.Stream] = map[int64][]byte{}
		}
		s.got[*k.Stream][*k.Offset] = k.Data
		size += len(k.Data)
		if len(k.Data) > lessor.MaxOutputChunk || size > lessor.MaxOutputCall {
			panic("a call is too large")
		}
	}
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	_ = json.NewEncoder(w).Encode(lessor.OutputAnswer{OK: true, HeadBytes: 64 << 10, TailBytes: s.tail})
}

// text returns what was taken of a stream, from an offset on, without a gap.
func (s *server) text(stream string, from int64) []byte {
	var all []byte
	for {
		next := s.got[stream][from+int64(len(all))]
		if next == nil {
			return all
		}
		all = append(all, next...)
	}
}

func begin(t *testing.T, tail int64) (*server, *Printer, *Buffer, *Buffer) {
	t.Helper()
	s := &server{got: map[string]map[int64][]byte{}, tail: tail}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	c, err := client.New(client.Config{Server: web.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	p, out, errs := New(c, lessor.LeaseID{UUID: lessor.UUID{1}}, "w"), &Buffer{}, &Buffer{}
	p.Add(lessor.Stdout, out)
	p.Add(lessor.Stderr, errs)
	return s, p, out, errs
}

func random(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

func TestFlushSendsEverythingOnce(t *testing.T) {
	s, p, out, errs := begin(t, 1<<20)
	text, other := random(700_000), random(3)
	_, _ = out.Write(text)
	_, _ = errs.Write(other)
	s.next = []int{503, 0, 503}
	for range 5 {
		_ = p.Flush(t.Context())
	}
	if !bytes.Equal(s.text(lessor.Stdout, 0), text) || !bytes.Equal(s.text(lessor.Stderr, 0), other) {
		t.Error("what was taken is not what was printed")
	}
	before := s.calls
	if err := p.Flush(t.Context()); err != nil || s.calls != before {
		t.Errorf("nothing was printed, and %d calls were made (%v)", s.calls-before, err)
	}
	if out.Size() != int64(len(text)) || len(out.data) != 0 {
		t.Errorf("%d bytes that were sent are kept in memory", len(out.data))
	}
}

// TestOutputFitsThroughAGateway: a gateway lets less through than the server would take.
func TestOutputFitsThroughAGateway(t *testing.T) {
	for most, want := range map[int64]bool{100_000: true, 10: false} {
		s, p, out, _ := begin(t, 1<<20)
		s.most = most
		text := random(900_000)
		_, _ = out.Write(text)
		if err := p.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := bytes.Equal(s.text(lessor.Stdout, 0), text); got != want || s.calls > 40 {
			t.Errorf("through %d bytes all output went: %v, in %d calls; want %v", most, got, s.calls, want)
		}
	}
}

// TestMiddleIsNotSent prints more than the server keeps before the first call.
func TestMiddleIsNotSent(t *testing.T) {
	const tail = 100_000
	s, p, out, _ := begin(t, tail)
	text := random(1_000_000)
	_, _ = out.Write(text[:70_000])
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, _ = out.Write(text[70_000:])
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(s.text(lessor.Stdout, 0), text[:64<<10]) {
		t.Error("the beginning is not what was printed")
	}
	if !bytes.Equal(s.text(lessor.Stdout, int64(len(text)-tail)), text[len(text)-tail:]) {
		t.Error("the end is not what was printed")
	}
	sent := 0
	for _, chunk := range s.got[lessor.Stdout] {
		sent += len(chunk)
	}
	if sent > 70_000+tail {
		t.Errorf("%d bytes were sent, of which %d are kept", sent, 64<<10+tail)
	}
}

func TestPrinterStopsWhenNothingIsWanted(t *testing.T) {
	s, p, out, _ := begin(t, 0)
	_, _ = out.Write([]byte("unwanted"))
	if err := p.Flush(t.Context()); err != nil {
		t.Errorf("output that nobody wants fails the end: %v", err)
	}
	_, _ = out.Write([]byte("more"))
	if err := p.Flush(t.Context()); err != nil || s.calls != 1 {
		t.Errorf("%d calls were made after the server said that it keeps no output (%v)", s.calls-1, err)
	}
	over, q, out2, _ := begin(t, 1<<20)
	over.next = []int{404}
	_, _ = out2.Write([]byte("late"))
	if err := q.Flush(t.Context()); lessor.CodeOf(err) != lessor.CodeLeaseNotFound {
		t.Errorf("the lease is over, and Flush returned %v", err)
	}
}

func TestSmallOutputRidesOnAHeartbeat(t *testing.T) {
	s, p, out, _ := begin(t, 1<<20)
	var sent lessor.Heartbeat
	beat := func(fail error) {
		_ = p.Beat(lessor.Heartbeat{WorkerID: new("w")}, func(b lessor.Heartbeat) error { sent = b; return fail })
	}
	_, _ = out.Write([]byte("a"))
	if beat(nil); sent.Output != nil {
		t.Error("a server that may be of an older release was sent output in a heartbeat")
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, _ = out.Write([]byte("bc"))
	beat(context.Canceled)
	if beat(nil); len(sent.Output) != 1 || string(sent.Output[0].Data) != "bc" || *sent.Output[0].Offset != 1 {
		t.Errorf("the heartbeat carries %v, want bc at 1", sent.Output)
	}
	if beat(nil); sent.Output != nil {
		t.Error("output that was acknowledged is sent again")
	}
	_, _ = out.Write([]byte(strings.Repeat("x", lessor.MaxOutputBeat+1)))
	if beat(nil); sent.Output != nil {
		t.Error("a heartbeat carries much output")
	}
	if before := s.calls; p.Flush(t.Context()) != nil || s.calls != before+1 {
		t.Errorf("the rest took %d calls", s.calls-before)
	}
}

// TestCallsKeepTheirPace prints all the time for ten seconds.
func TestCallsKeepTheirPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, calls := &Buffer{}, 0
		c, err := client.New(client.Config{Server: "http://test", HTTP: &http.Client{
			Transport: roundTrip(func(*http.Request) *http.Response {
				calls++
				w := httptest.NewRecorder()
				_ = json.NewEncoder(w).Encode(lessor.OutputAnswer{OK: true, TailBytes: 1 << 20})
				return w.Result()
			}),
		}})
		if err != nil {
			t.Fatal(err)
		}
		p := New(c, lessor.LeaseID{}, "w")
		p.Add(lessor.Stdout, out)
		ctx, cancel := context.WithTimeout(t.Context(), 10*Interval+Interval/2)
		defer cancel()
		var printing sync.WaitGroup
		defer printing.Wait()
		printing.Go(func() {
			for ctx.Err() == nil {
				_, _ = out.Write([]byte("line\n"))
				time.Sleep(Interval / 100)
			}
		})
		p.Run(ctx)
		if calls != 10 {
			t.Errorf("%d calls in ten seconds, want 10", calls)
		}
	})
}

type roundTrip func(*http.Request) *http.Response

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }
