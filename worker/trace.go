package worker

import (
	"context"
	"crypto/subtle"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"lessor/client"
)

// trace starts the span of an attempt in the trace of the submission. Its parent is the server's span of the grant,
// whose id is the exclusive or of both halves of the lease id. Calls that the handler makes with client continue the
// trace, even if no tracer is set up.
func (w *Worker) trace(l *lease) (context.Context, trace.Span) {
	ctx, job := l.ctx, &l.grant.Job
	if id, err := trace.TraceIDFromHex(job.TraceID); err == nil {
		grant := trace.SpanContextConfig{TraceID: id, TraceFlags: trace.FlagsSampled, Remote: true}
		lease := l.id()
		subtle.XORBytes(grant.SpanID[:], lease.UUID[:8], lease.UUID[8:])
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(grant))
	}
	ctx, span := w.tracer.Start(ctx, job.Type, trace.WithSpanKind(trace.SpanKindConsumer))
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("lessor.job_id", job.ID.String()),
			attribute.String("lessor.lease_id", l.id().String()),
			attribute.Int64("lessor.fence", l.grant.Lease.Fence),
			attribute.Int("lessor.attempt", job.Attempt),
			attribute.String("lessor.worker_id", w.cfg.ID),
		)
	}
	if sc := span.SpanContext(); sc.IsValid() {
		parent := "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-" + sc.TraceFlags().String()
		ctx = client.WithTraceparent(ctx, parent)
	}
	return ctx, span
}

// endSpan records how the attempt ended.
func endSpan(span trace.Span, e end, sent bool, err error) {
	outcome := e.name()
	if !sent {
		outcome = "lost"
	}
	if span.IsRecording() {
		span.SetAttributes(attribute.String("lessor.outcome", outcome))
	}
	if e.status == "failed" {
		span.RecordError(err)
		span.SetStatus(codes.Error, e.err)
	}
	span.End()
}
