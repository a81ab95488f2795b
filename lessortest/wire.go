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
	"strings"
	"sync"
	"syscall"

	"lessor"
)

// wire carries the calls of all clients to the node that runs, and is where calls get lost.
type wire struct {
	mu      sync.Mutex
	pipe    *http.Client // nil while no node runs
	dead    map[string]bool
	deaf    map[lessor.LeaseID]bool // leases whose heartbeats do not arrive
	flights map[*flight]bool
}

// flight is a call that is under way.
type flight struct {
	worker string
	cancel context.CancelCauseFunc
}

var errCut = errors.New("the connection was cut")

func newWire() *wire {
	return &wire{dead: map[string]bool{}, deaf: map[lessor.LeaseID]bool{}, flights: map[*flight]bool{}}
}

// connect leads further calls to another node, or with nil to none.
func (w *wire) connect(pipe *http.Client) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pipe = pipe
}

// kill refuses further calls of a worker and cuts those that are under way.
func (w *wire) kill(worker string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead[worker] = true
	for f := range w.flights {
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

// deafen loses the heartbeats of a lease, as if they arrived, until heard again.
func (w *wire) deafen(id lessor.LeaseID, deaf bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deaf[id] = deaf
}

// said is what a wire reads of a body.
type said struct {
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
	var s said
	_ = json.Unmarshal(body, &s) // a body that is not read here is the server's to refuse
	ctx, cancel := context.WithCancelCause(req.Context())
	f := &flight{worker: s.WorkerID, cancel: cancel}
	w.mu.Lock()
	pipe := w.pipe
	if pipe == nil || w.dead[s.WorkerID] {
		w.mu.Unlock()
		cancel(nil)
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	w.flights[f] = true
	unheard := w.unheard(req.URL.Path, s.LeaseIDs)
	w.mu.Unlock()
	landed := func() {
		w.mu.Lock()
		delete(w.flights, f)
		w.mu.Unlock()
		cancel(nil)
	}
	if len(unheard) > 0 {
		defer landed()
		return w.hush(ctx, pipe, req, s, unheard)
	}
	resp, err := send(ctx, pipe, req, body)
	if err != nil {
		landed()
		return nil, err
	}
	resp.Body = &landing{resp.Body, landed}
	return resp, nil
}

// unheard returns which leases of a heartbeat are not to be heard of.
func (w *wire) unheard(url string, ids []lessor.LeaseID) []lessor.LeaseID {
	if path.Base(url) != "heartbeat" {
		return nil
	}
	if id, err := lessor.ParseUUID(path.Base(strings.TrimSuffix(url, "/heartbeat"))); err == nil {
		ids = []lessor.LeaseID{{UUID: id}}
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id lessor.LeaseID) bool { return !w.deaf[id] })
}

// hush answers a heartbeat in place of the server for the leases that it must not hear of, and asks it about the
// others.
func (w *wire) hush(
	ctx context.Context, pipe *http.Client, req *http.Request, s said, unheard []lessor.LeaseID,
) (*http.Response, error) {
	type result = map[string]any
	fine := func(id lessor.LeaseID) result {
		return result{"lease_id": id, "ok": true, "expires_at": nil, "heartbeat_after_ms": 0, "cancel_requested": false}
	}
	if len(s.LeaseIDs) == 0 {
		return answer(req, fine(unheard[0])), nil
	}
	others := slices.DeleteFunc(slices.Clone(s.LeaseIDs),
		func(id lessor.LeaseID) bool { return slices.Contains(unheard, id) })
	var told struct {
		Results []result `json:"results"`
	}
	if len(others) > 0 {
		body, _ := json.Marshal(map[string]any{"worker_id": s.WorkerID, "lease_ids": others}) // of strings
		resp, err := send(ctx, pipe, req, body)
		if err != nil || resp.StatusCode != http.StatusOK {
			return resp, err
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&told); err != nil {
			return nil, err
		}
	}
	results := make([]result, 0, len(s.LeaseIDs))
	for _, id := range s.LeaseIDs {
		if slices.Contains(unheard, id) || len(told.Results) == 0 {
			results = append(results, fine(id))
			continue
		}
		results, told.Results = append(results, told.Results[0]), told.Results[1:]
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

// landing is a body whose call is over when it is closed.
type landing struct {
	io.ReadCloser
	landed func()
}

// Close closes the body.
func (l *landing) Close() error {
	defer l.landed()
	return l.ReadCloser.Close()
}
