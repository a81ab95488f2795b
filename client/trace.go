package client

import "context"

type traceparentKey struct{}

// WithTraceparent returns a context whose calls carry the W3C trace context header traceparent: the server continues
// that trace and keeps its id with the jobs it submits.
func WithTraceparent(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, traceparentKey{}, traceparent)
}

func traceparent(ctx context.Context) string {
	s, _ := ctx.Value(traceparentKey{}).(string)
	return s
}
