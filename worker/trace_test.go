package worker_test

import (
	"context"
	"errors"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"lessor"
	"lessor/client"
	"lessor/worker"
)

const (
	traceID     = "4bf92f3577b34da6a3ce929d0e0e4736"
	traceparent = "00-" + traceID + "-00f067aa0ba902b7-01"
)

// chain submits a job in a trace whose handler submits another, and returns both when they are done.
func chain(t *testing.T, s testServer, cfg worker.Config) (first, second lessor.Job) {
	w := s.worker(cfg)
	next := make(chan lessor.JobID, 1)
	worker.Handle(w, "first", func(ctx context.Context, _ *worker.Job[order]) (any, error) {
		job, err := s.Client().Submit(ctx, "second", nil, nil)
		next <- job.ID
		return nil, err
	})
	worker.Handle(w, "second", func(context.Context, *worker.Job[order]) (any, error) {
		return nil, worker.Permanent(errors.New("no"))
	})
	s.Run(w)
	job, err := s.Client().Submit(client.WithTraceparent(t.Context(), traceparent), "first", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.WaitFor(job.ID, lessor.Completed), s.WaitFor(<-next, lessor.Failed)
}

func TestTraceGoesOnThroughTheHandler(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		first, second := chain(t, s, worker.Config{})
		if first.TraceID != traceID || second.TraceID != traceID {
			t.Errorf("trace ids %s and %s without a tracer, want %s", first.TraceID, second.TraceID, traceID)
		}
	})
}

func TestAttemptIsASpanOfTheSubmittersTrace(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		seen := tracetest.NewSpanRecorder()
		first, second := chain(t, s, worker.Config{
			ID:             "w",
			TracerProvider: trace.NewTracerProvider(trace.WithSpanProcessor(seen)),
		})
		spans := map[string]trace.ReadOnlySpan{} // they end in either order
		for _, span := range seen.Ended() {
			spans[span.Name()] = span
		}
		if len(spans) != 2 {
			t.Fatalf("%d spans, want 2", len(spans))
		}
		for _, want := range []struct {
			job     lessor.Job
			status  codes.Code
			outcome string
		}{{first, codes.Unset, "completed"}, {second, codes.Error, "failed"}} {
			span := spans[want.job.Type]
			if span.SpanContext().TraceID().String() != traceID || want.job.TraceID != traceID {
				t.Errorf("span %s in trace %s of a job in trace %s; want all in %s",
					span.Name(), span.SpanContext().TraceID(), want.job.TraceID, traceID)
			}
			attrs := attribute.NewSet(span.Attributes()...)
			id, _ := attrs.Value("lessor.job_id")
			outcome, _ := attrs.Value("lessor.outcome")
			if id.AsString() != want.job.ID.String() || outcome.AsString() != want.outcome ||
				span.Status().Code != want.status {
				t.Errorf("span of job %s ended %s (%s), want %s %s (%s)",
					id.AsString(), outcome.AsString(), span.Status().Code, want.job.ID, want.outcome, want.status)
			}
		}
	})
}
