package worker_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"lessor"
	"lessor/worker"
)

// gateway accepts no body of more than 1 MiB, as nginx does by default.
type gateway struct{ http.RoundTripper }

func (g gateway) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.ContentLength <= 1<<20 {
		return g.RoundTripper.RoundTrip(req)
	}
	_ = req.Body.Close()
	return &http.Response{
		Status: "413 Request Entity Too Large", StatusCode: http.StatusRequestEntityTooLarge, Request: req,
		Body: io.NopCloser(strings.NewReader("<html>")),
	}, nil
}

// Each result passes the gateway, but not all in one call.
func TestResultsPassAGatewayThatBoundsBodies(t *testing.T) {
	withServer(t, func(t *testing.T, s testServer) {
		w := s.worker(worker.Config{Client: over(t, &route{RoundTripper: gateway{s.Transport()}}), Concurrency: 20})
		all := make(chan struct{})
		worker.Handle(w, "print", func(context.Context, *worker.Job[order]) (any, error) {
			<-all
			return strings.Repeat("x", 100<<10), nil
		})
		s.Run(w)
		ids := s.submitAll("print", 20)
		for _, id := range ids {
			s.WaitForLease(id)
		}
		close(all)
		s.Advance(10 * time.Second)
		for _, id := range ids {
			if job := s.Job(id); job.State != lessor.Completed || len(job.Result) != 100<<10+2 {
				t.Errorf("job %s is %s with a result of %d bytes, want completed with 100 KiB",
					id, job.State, len(job.Result))
			}
		}
	})
}
