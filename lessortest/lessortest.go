// Package lessortest runs a whole Lessor server inside a test of a worker: store, scheduler and HTTP API, in the
// process of the test, without a network, and in fake time.
//
//	func TestMailIsSent(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			s := lessortest.Start(t)
//			w, _ := worker.New(worker.Config{Client: s.Client()})
//			worker.Handle(w, "mail", sendMail)
//			s.Run(w)
//			job := s.Submit("mail", Mail{To: "ann"})
//			s.WaitFor(job, lessor.Completed)
//		})
//	}
//
// In a bubble of testing/synctest, time passes only while all goroutines wait, so that an hour of leases takes a second
// or two. Outside a bubble everything works in real time. The server applies all its rules: capacity, caps,
// retries, expiry. A test causes faults with Expire, KillWorker and Restart.
//
// A method that fails ends the test with a message that has the expected state, the actual state and the record of
// the job.
package lessortest

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lessor"
	"lessor/client"
	"lessor/node"
	"lessor/worker"
)

// Server is a server that runs until its test ends.
type Server struct {
	t      testing.TB
	cfg    node.Config
	wire   *wire
	client *client.Client
	admin  *client.Client
	stop   func() // stops the running node; nil while none is running
}

// Start starts a server with an empty store, which stops when the test ends. It takes at most one cfg. The default of
// Capacity.Busy is 0 here, so that the load of the machine has no influence.
func Start(t testing.TB, cfg ...node.Config) *Server {
	t.Helper()
	s := &Server{t: t, wire: newWire()}
	if len(cfg) > 0 {
		s.cfg = cfg[0]
	}
	if s.cfg.Data == "" {
		s.cfg.Data = t.TempDir()
	}
	if s.cfg.Capacity.Busy == nil {
		s.cfg.Capacity.Busy = new(0)
	}
	s.open()
	t.Cleanup(s.close)
	token, err := os.ReadFile(filepath.Join(s.cfg.Data, "admin.token"))
	if err != nil {
		t.Fatalf("lessortest: read the admin token: %v", err)
	}
	s.client = s.connect("")
	s.admin = s.connect(strings.TrimSpace(string(token)))
	return s
}

// Client returns a client without a token, which is enough for workers and submitters.
func (s *Server) Client() *client.Client { return s.client }

// Admin returns a client with the admin token, for example to set the capacity, drain or revoke.
func (s *Server) Admin() *client.Client { return s.admin }

// Transport returns the transport of these clients, for tests that need their own client, with a token or with faults.
func (s *Server) Transport() http.RoundTripper { return s.wire }

func (s *Server) connect(token string) *client.Client {
	s.t.Helper()
	c, err := client.New(client.Config{Server: "http://127.0.0.1", Token: token, HTTP: &http.Client{Transport: s.wire}})
	if err != nil {
		s.t.Fatalf("lessortest: %v", err)
	}
	return c
}

// open starts a node on the data folder.
func (s *Server) open() {
	s.t.Helper()
	n, err := node.Open(context.Background(), s.cfg, nil)
	if err != nil {
		s.t.Fatalf("lessortest: start the server: %v", err)
	}
	ln, pipe := node.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- n.Serve(ctx, ln) }()
	if _, err := n.Status(ctx); err != nil { // waits until the node is ready
		s.t.Errorf("lessortest: start the server: %v", err)
	}
	s.wire.connect(pipe)
	s.stop = func() {
		s.wire.connect(nil)
		pipe.CloseIdleConnections()
		cancel()
		if err := <-served; err != nil {
			s.t.Errorf("lessortest: the server ended with %v", err)
		}
		if err := n.Close(); err != nil {
			s.t.Errorf("lessortest: close the store: %v", err)
		}
	}
}

func (s *Server) close() {
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

// Submit submits a job and returns its id. The payload is encoded as JSON; nil means {}.
func (s *Server) Submit(jobType string, payload any) lessor.JobID {
	s.t.Helper()
	job, err := s.client.Submit(context.Background(), jobType, payload, nil)
	if err != nil {
		s.t.Fatalf("lessortest: submit %s: %v", jobType, err)
	}
	return job.ID
}

// Run runs w until stop is called or the test ends. Then w drains, and the test fails if w leaves something behind.
func (s *Server) Run(w *worker.Worker) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx) }()
	stopped := false
	stop = func() {
		s.t.Helper()
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ran; err != nil && !s.wire.isDead(w.ID()) {
			s.t.Errorf("lessortest: worker %s ended with: %v", w.ID(), err)
		}
	}
	s.t.Cleanup(stop)
	return stop
}

// Restart stops the server, waits for downtime, and starts it again on the same store.
func (s *Server) Restart(downtime time.Duration) {
	s.t.Helper()
	s.close()
	s.Advance(downtime)
	s.open()
}
