package telemetry

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// TracesConfig says where spans are sent.
type TracesConfig struct {
	// Endpoint is the URL of an OTLP/HTTP collector, with user and password if it needs them. The default path is
	// /v1/traces. Empty = no traces.
	Endpoint string
	// Version and Instance identify this node in its spans.
	Version, Instance string
	// Failed is called when spans could not be sent, at most once a minute.
	Failed func(error)
}

// Traces makes the spans of a node and sends them to a collector. All methods but Call may be called on a nil Traces,
// which makes no spans.
type Traces struct {
	exporter *otlptrace.Exporter
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	failed   func(error)
	failedAt atomic.Int64 // time of the last call of failed, in Unix seconds
	leases   leaseTraces
}

// NewTraces returns nil if there is no endpoint. Only Run sends spans.
func NewTraces(cfg TracesConfig) (*Traces, error) {
	if cfg.Endpoint == "" {
		return nil, nil
	}
	u, err := url.Parse(cfg.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("read the collector's address: %w", err)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	opts := []otlptracehttp.Option{otlptracehttp.WithEndpointURL(u.String())}
	if password, ok := u.User.Password(); ok {
		basic := base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password))
		opts = append(opts, otlptracehttp.WithHeaders(map[string]string{"Authorization": "Basic " + basic}))
	}
	t := &Traces{exporter: otlptracehttp.NewUnstarted(opts...), failed: cfg.Failed}
	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample())),
		sdktrace.WithIDGenerator(spanIDs{}),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "lessor"),
			attribute.String("service.version", cfg.Version),
			attribute.String("service.instance.id", cfg.Instance),
		)),
	)
	t.tracer = t.provider.Tracer("lessor")
	return t, nil
}

// lastSpans bounds how long a stopping node tries to send its last spans. A supervisor waits longer than that.
const lastSpans = 5 * time.Second

// Run sends spans until ctx is done, and then the remaining ones.
func (t *Traces) Run(ctx context.Context) {
	if t == nil {
		return
	}
	if err := t.exporter.Start(ctx); err != nil {
		t.fail(err)
		return
	}
	t.provider.RegisterSpanProcessor(sdktrace.NewBatchSpanProcessor(sender{t.exporter, t}))
	<-ctx.Done()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSpans)
	defer cancel()
	if err := t.provider.Shutdown(last); err != nil {
		t.fail(err)
	}
}

// failEvery is the least time between calls of failed, in seconds: sending may fail many times a second.
const failEvery = 60

func (t *Traces) fail(err error) {
	now, last := time.Now().Unix(), t.failedAt.Load()
	if now-last >= failEvery && t.failedAt.CompareAndSwap(last, now) {
		t.failed(err)
	}
}

// sender keeps failures away from OpenTelemetry's global handler, which all nodes of a process share.
type sender struct {
	*otlptrace.Exporter
	traces *Traces
}

func (s sender) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := s.Exporter.ExportSpans(ctx, spans); err != nil {
		s.traces.fail(err)
	}
	return nil
}
