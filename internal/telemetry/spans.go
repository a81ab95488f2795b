package telemetry

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"lessor"
)

// spanOf returns the id of a submission's span for the id of a job, and that of a grant's span for the id of a lease:
// the exclusive or of both halves. So other processes find a parent span without another field; worker.Worker uses the
// same rule.
func spanOf(u lessor.UUID) (id trace.SpanID) {
	subtle.XORBytes(id[:], u[:8], u[8:])
	return id
}

type spanIDKey struct{}

// spanIDs gives a span the id in its context, or a random one.
type spanIDs struct{}

func (g spanIDs) NewIDs(ctx context.Context) (id trace.TraceID, span trace.SpanID) {
	rand.Read(id[:])
	return id, g.NewSpanID(ctx, id)
}

func (spanIDs) NewSpanID(ctx context.Context, _ trace.TraceID) (span trace.SpanID) {
	if id, ok := ctx.Value(spanIDKey{}).(trace.SpanID); ok {
		return id
	}
	rand.Read(span[:])
	return span
}

// CallSpan is the span of one HTTP call.
type CallSpan struct{ span trace.Span }

// Call starts the span of an HTTP call: below the caller's span if h has a traceparent, otherwise in the given trace.
func (t *Traces) Call(ctx context.Context, h http.Header, traceID, method, route string) (context.Context, CallSpan) {
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(h))
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = within(ctx, traceID, trace.SpanID{})
	}
	ctx, span := t.tracer.Start(ctx, method+" "+route, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", method), attribute.String("http.route", route),
	))
	return ctx, CallSpan{span}
}

// Traceparent returns the W3C header that names the span.
func (s CallSpan) Traceparent() string {
	sc := s.span.SpanContext()
	return "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-" + sc.TraceFlags().String()
}

// End ends the span of an answered call. A zero CallSpan has no span to end.
func (s CallSpan) End(status int) {
	if s.span == nil {
		return
	}
	s.span.SetAttributes(attribute.Int("http.response.status_code", status))
	if status >= http.StatusInternalServerError {
		s.span.SetStatus(codes.Error, http.StatusText(status))
	}
	s.span.End()
}

// within returns a context in a trace, below a span of another process if parent is not zero. An invalid trace id
// leaves ctx as it is, so that a new trace begins.
func within(ctx context.Context, traceID string, parent trace.SpanID) context.Context {
	id, err := trace.TraceIDFromHex(traceID)
	if err != nil {
		return ctx
	}
	c := trace.SpanContextConfig{TraceID: id, SpanID: parent, Remote: true}
	if parent.IsValid() {
		c.TraceFlags = trace.FlagsSampled // a job stores only its trace id, not the flags
	}
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(c))
}

func about(j *lessor.Job) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("lessor.job_id", j.ID.String()), attribute.String("lessor.type", j.Type),
		attribute.String("lessor.tenant_id", j.TenantID.String()),
	}
}

// Submitted makes the span of a submission. ctx is the context of the call.
func (t *Traces) Submitted(ctx context.Context, j *lessor.Job) {
	if t == nil {
		return
	}
	opts := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(about(j)...)}
	if call := trace.SpanContextFromContext(ctx); call.TraceID().String() != j.TraceID { // the job has its own trace
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: call}))
		ctx = within(ctx, j.TraceID, trace.SpanID{})
	}
	_, span := t.tracer.Start(context.WithValue(ctx, spanIDKey{}, spanOf(j.ID.UUID)), "submit", opts...)
	span.End()
}

// Granted makes a span for each grant, below the submission of its job. The job of a tick has no submission: its first
// grant begins the trace.
func (t *Traces) Granted(grants []lessor.Grant) {
	if t == nil {
		return
	}
	for i := range grants {
		j, l := &grants[i].Job, &grants[i].Lease
		if !t.leases.put(l.ID, leaseTrace{j.TraceID, about(j)}) {
			continue // a repeated request
		}
		parent := spanOf(j.ID.UUID)
		if j.DefinitionID != nil {
			parent = trace.SpanID{}
		}
		ctx := context.WithValue(within(context.Background(), j.TraceID, parent), spanIDKey{}, spanOf(l.ID.UUID))
		_, span := t.tracer.Start(ctx, "grant", trace.WithAttributes(about(j)...), trace.WithAttributes(
			attribute.String("lessor.lease_id", l.ID.String()), attribute.Int64("lessor.fence", l.Fence),
			attribute.Int("lessor.attempt", j.Attempt), attribute.String("lessor.worker_id", l.WorkerID),
		))
		span.End()
	}
}

// Ended makes the span of the end of a lease that this node granted. ctx is the context of the worker's call. If that
// call belongs to another trace, the parent of the span is the grant.
func (t *Traces) Ended(ctx context.Context, id lessor.LeaseID, outcome string) {
	if t == nil {
		return
	}
	l, ok := t.leases.take(id)
	if !ok {
		return
	}
	if trace.SpanContextFromContext(ctx).TraceID().String() != l.trace {
		ctx = within(ctx, l.trace, spanOf(id.UUID))
	}
	_, span := t.tracer.Start(ctx, "finish", trace.WithAttributes(l.about...), trace.WithAttributes(
		attribute.String("lessor.lease_id", id.String()), attribute.String("lessor.outcome", outcome),
	))
	span.End()
}

// leaseTrace describes the job of a lease for the span of its end.
type leaseTrace struct {
	trace string
	about []attribute.KeyValue
}

// leaseTraces remembers the leases of this node. Leases that expire are forgotten with their generation.
type leaseTraces struct {
	mu         sync.Mutex
	young, old map[lessor.LeaseID]leaseTrace
}

// generation is half of the leases that are remembered, which is more than one node has at once.
const generation = 32768

// put adds a lease. It returns false if the lease is known.
func (m *leaseTraces) put(id lessor.LeaseID, l leaseTrace) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, young := m.young[id]
	_, old := m.old[id]
	if young || old {
		return false
	}
	if m.young == nil || len(m.young) >= generation {
		m.young, m.old = map[lessor.LeaseID]leaseTrace{}, m.young
	}
	m.young[id] = l
	return true
}

func (m *leaseTraces) take(id lessor.LeaseID) (leaseTrace, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.young[id]
	if !ok {
		l, ok = m.old[id]
	}
	delete(m.young, id)
	delete(m.old, id)
	return l, ok
}
