package lessortest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"path"
	"slices"
	"sync"
	"syscall"

	"lessor"
)

// wire carries the calls of all clients to the running node. Here calls get lost.
type wire struct {
	mu      sync.Mutex
	pipe    *http.Client // nil while no node is running
	dead    map[string]bool
	dropped map[lessor.LeaseID]bool // leases whose heartbeats and entries do not arrive
	calls   map[*pending]bool
}

// pending is a call that waits for its answer.
type pending struct {
	worker string
	cancel context.CancelCauseFunc
}

var errCut = errors.New("the connection was cut")

func newWire() *wire {
	return &wire{dead: map[string]bool{}, dropped: map[lessor.LeaseID]bool{}, calls: map[*pending]bool{}}
}

// connect directs further calls to another node, or with nil to none.
func (w *wire) connect(pipe *http.Client) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pipe = pipe
}

// kill refuses further calls of a worker and cancels its current ones.
func (w *wire) kill(worker string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead[worker] = true
	for f := range w.calls {
		if f.worker == worker {
			f.cancel(errCut)
		}
	}
}

func (w *wire) isDead(worker string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead[worker]
}

// dropHeartbeats drops the heartbeats of a lease, but answers them, until drop is false. Journal entries extend the
// lease too; as they must not get lost, those of the lease cannot be sent.
func (w *wire) dropHeartbeats(id lessor.LeaseID, drop bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropped[id] = drop
}

// callBody holds the fields of a body that the wire reads.
type callBody struct {
	WorkerID string           `json:"worker_id"`
	LeaseIDs []lessor.LeaseID `json:"lease_ids"`
}

// RoundTrip sends one call.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	var s callBody
	_ = json.Unmarshal(body, &s) // the server refuses a body that is not JSON
	ctx, cancel := context.WithCancelCause(req.Context())
	f := &pending{worker: s.WorkerID, cancel: cancel}
	w.mu.Lock()
	pipe := w.pipe
	if pipe == nil || w.dead[s.WorkerID] || w.dropped[leaseOf(req.URL.Path, "journal")] {
		w.mu.Unlock()
		cancel(nil)
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	w.calls[f] = true
	lost := w.droppedOf(req.URL.Path, s.LeaseIDs)
	w.mu.Unlock()
	ended := func() {
		w.mu.Lock()
		delete(w.calls, f)
		w.mu.Unlock()
		cancel(nil)
	}
	if len(lost) > 0 {
		defer ended()
		return w.answerFor(ctx, pipe, req, s, lost)
	}
	resp, err := send(ctx, pipe, req, body)
	if err != nil {
		ended()
		return nil, err
	}
	resp.Body = &trackedBody{resp.Body, ended}
	return resp, nil
}

// droppedOf returns the leases of a heartbeat that the server must not see.
func (w *wire) droppedOf(url string, ids []lessor.LeaseID) []lessor.LeaseID {
	if path.Base(url) != "heartbeat" {
		return nil
	}
	if id := leaseOf(url, "heartbeat"); id != (lessor.LeaseID{}) {
		ids = []lessor.LeaseID{id}
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id lessor.LeaseID) bool { return !w.dropped[id] })
}

// leaseOf returns the lease of a call with the given verb; none if url is that of another call.
func leaseOf(url, verb string) lessor.LeaseID {
	if path.Base(url) != verb {
		return lessor.LeaseID{}
	}
	id, _ := lessor.ParseUUID(path.Base(path.Dir(url)))
	return lessor.LeaseID{UUID: id}
}

// answerFor answers a heartbeat in place of the server for the lost leases, and asks the server about the others.
func (w *wire) answerFor(
	ctx context.Context, pipe *http.Client, req *http.Request, s callBody, lost []lessor.LeaseID,
) (*http.Response, error) {
	type result = map[string]any
	fine := func(id lessor.LeaseID) result {
		return result{"lease_id": id, "ok": true, "expires_at": nil, "heartbeat_after_ms": 0, "cancel_requested": false}
	}
	if len(s.LeaseIDs) == 0 {
		return answer(req, fine(lost[0])), nil
	}
	others := slices.DeleteFunc(slices.Clone(s.LeaseIDs),
		func(id lessor.LeaseID) bool { return slices.Contains(lost, id) })
	var rest struct {
		Results []result `json:"results"`
	}
	if len(others) > 0 {
		body, _ := json.Marshal(map[string]any{"worker_id": s.WorkerID, "lease_ids": others}) // of strings
		resp, err := send(ctx, pipe, req, body)
		if err != nil || resp.StatusCode != http.StatusOK {
			return resp, err
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&rest); err != nil {
			return nil, err
		}
	}
	results := make([]result, 0, len(s.LeaseIDs))
	for _, id := range s.LeaseIDs {
		if slices.Contains(lost, id) || len(rest.Results) == 0 {
			results = append(results, fine(id))
			continue
		}
		results, rest.Results = append(results, rest.Results[0]), rest.Results[1:]
	}
	return answer(req, map[string]any{"results": results}), nil
}

func send(ctx context.Context, pipe *http.Client, req *http.Request, body []byte) (*http.Response, error) {
	out := req.Clone(ctx)
	out.ContentLength = int64(len(body))
	out.Body = io.NopCloser(bytes.NewReader(body))
	resp, err := pipe.Transport.RoundTrip(out)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errCut) {
		return nil, cause
	}
	return resp, err
}

func answer(req *http.Request, v any) *http.Response {
	body, _ := json.Marshal(v) // of maps and strings
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
	}
}

// trackedBody is a body that ends its call when it is closed.
type trackedBody struct {
	io.ReadCloser
	ended func()
}

// Close closes the body.
func (l *trackedBody) Close() error {
	defer l.ended()
	return l.ReadCloser.Close()
}
