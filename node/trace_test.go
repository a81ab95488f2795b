package node

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	span "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"lessor"
	"lessor/client"
	"lessor/worker"
)

// spanCollector is an OTLP/HTTP collector that keeps all spans by their name.
type spanCollector struct {
	mu    sync.Mutex
	spans map[string][]*span.Span
	user  string // the user name of the last delivery
}

func (c *spanCollector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unzipped
	}
	raw, err := io.ReadAll(body)
	var sent collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(raw, &sent) != nil {
		http.Error(w, "not spans", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.user, _, _ = r.BasicAuth()
	for _, rs := range sent.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				c.spans[s.Name] = append(c.spans[s.Name], s)
			}
		}
	}
}

// only returns the one span of a name.
func (c *spanCollector) only(t *testing.T, name string) *span.Span {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spans[name]) != 1 {
		t.Fatalf("%d spans %q, want 1; there are %v", len(c.spans[name]), name, c.spans)
	}
	return c.spans[name][0]
}

// serveTraced serves a node that sends its spans to a collector. The function that it returns stops the node, which
// sends the spans that are left.
func serveTraced(t *testing.T, url string) (*client.Client, func()) {
	t.Helper()
	cfg := testConfig(t)
	cfg.Telemetry.OTLPEndpoint = url
	n, err := Open(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	ln, httpClient := Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Serve(ctx, ln) }()
	for end := time.Now().Add(60 * time.Second); n.scheduler.Ready() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the node is not ready after a minute")
		}
	}
	c, err := client.New(client.Config{Server: "http://127.0.0.1", HTTP: httpClient})
	if err != nil {
		t.Fatal(err)
	}
	return c, func() {
		httpClient.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestOneTraceFromSubmissionToFinish runs a node and a worker that send their spans to one collector.
func TestOneTraceFromSubmissionToFinish(t *testing.T) {
	got := &spanCollector{spans: map[string][]*span.Span{}}
	server := httptest.NewServer(got)
	defer server.Close()
	c, stop := serveTraced(t, server.URL)

	exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(server.URL+"/v1/traces"))
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	w, err := worker.New(worker.Config{Client: c, ID: "w", TracerProvider: provider})
	if err != nil {
		t.Fatal(err)
	}
	worker.Handle(w, "mail", func(context.Context, *worker.Job[struct{}]) (any, error) { return nil, nil })
	ctx, cancel := context.WithCancel(t.Context())
	worked := make(chan error, 1)
	go func() { worked <- w.Run(ctx) }()

	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	submitted, err := c.Submit(
		client.WithTraceparent(t.Context(), "00-"+trace+"-00f067aa0ba902b7-01"), "mail", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	job := submitted.Job
	for end := time.Now().Add(60 * time.Second); job.State != lessor.Completed; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the job is %s after a minute, want completed", job.State)
		}
		if job, err = c.Job(t.Context(), job.ID); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-worked; err != nil {
		t.Errorf("worker: %v", err)
	}
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	stop()

	parent := []byte{0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7}
	for _, name := range []string{"POST /api/system/scheduler/jobs", "submit", "grant", "mail"} {
		s := got.only(t, name)
		if string(s.ParentSpanId) != string(parent) {
			t.Errorf("the parent of %q is %x, want %x", name, s.ParentSpanId, parent)
		}
		parent = s.SpanId
	}
	if f := got.only(t, "finish"); string(f.ParentSpanId) != string(got.only(t, "grant").SpanId) {
		t.Errorf("the parent of the finish is %x, want the grant", f.ParentSpanId)
	}
	for _, name := range []string{"POST /api/system/scheduler/jobs", "submit", "grant", "mail", "finish"} {
		s := got.only(t, name)
		if id := hex.EncodeToString(s.TraceId); id != trace {
			t.Errorf("%q is in trace %s, want %s", name, id, trace)
		}
		found := map[string]string{}
		for _, a := range s.Attributes {
			found[a.Key] = a.Value.GetStringValue()
		}
		if name[0] != 'P' && found["lessor.job_id"] != job.ID.String() {
			t.Errorf("%q is about job %q, want %s", name, found["lessor.job_id"], job.ID)
		}
	}
}

// TestUnsampledCallsAreNotSent: a node sends no span of a call that its caller did not sample, and none of a request
// without a trace that got no job. The URL of the collector has a user name and a password.
func TestUnsampledCallsAreNotSent(t *testing.T) {
	got := &spanCollector{spans: map[string][]*span.Span{}}
	server := httptest.NewServer(got)
	defer server.Close()
	c, stop := serveTraced(t, strings.Replace(server.URL, "://", "://ann:secret@", 1))
	ctx := client.WithTraceparent(t.Context(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")
	if _, err := c.Submit(ctx, "mail", nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Request(t.Context(), lessor.LeaseRequest{
		WorkerID: new("w"),
		Types:    []string{"other"},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Capacity(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop()
	got.only(t, "GET /api/system/scheduler/capacity")
	if len(got.spans) != 1 || got.user != "ann" {
		t.Errorf("spans: %v from %q, want only that of the capacity, from ann", got.spans, got.user)
	}
}
