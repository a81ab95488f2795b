package worker

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"lessor/client"
)

// trace begins the span of an attempt, in the trace of whoever submitted the job. Calls that the handler makes with client
// carry it on, also where no tracing is set up.
func (w *Worker) trace(l *held) (context.Context, trace.Span) {
	ctx, job := l.ctx, l.grant.Job
	id, err := trace.TraceIDFromHex(job.TraceID)
	if err == nil {
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, Remote: true}))
	}
	ctx, span := w.tracer.Start(ctx, job.Type, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attribute.String("lessor.job_id", job.ID.String()),
		attribute.String("lessor.lease_id", l.id().String()),
		attribute.Int64("lessor.fence", l.grant.Lease.Fence),
		attribute.Int("lessor.attempt", job.Attempt),
		attribute.String("lessor.worker_id", w.cfg.ID),
	))
	sc := span.SpanContext()
	traceID, spanID, flags := job.TraceID, sc.SpanID(), sc.TraceFlags()
	if sc.IsValid() {
		traceID = sc.TraceID().String()
	} else {
		copy(spanID[:], l.grant.Lease.ID.UUID[8:]) // the random half of a uuid v7
	}
	if err == nil || sc.IsValid() {
		ctx = client.WithTraceparent(ctx, "00-"+traceID+"-"+spanID.String()+"-"+flags.String())
	}
	return ctx, span
}

// endSpan says how the attempt ended.
func endSpan(span trace.Span, e end, sent bool, err error) {
	outcome := e.name()
	if !sent {
		outcome = "lost"
	}
	span.SetAttributes(attribute.String("lessor.outcome", outcome))
	if e.status == "failed" {
		span.RecordError(err)
		span.SetStatus(codes.Error, e.err)
	}
	span.End()
}
