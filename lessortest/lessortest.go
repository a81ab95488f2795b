// Package lessortest is a whole Lessor server for the tests of those who write workers: the store, the scheduler and
// the HTTP API, inside the test's process, without a network, in fake time.
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
// Inside a bubble of testing/synctest time passes only while everybody waits, so that an hour of leases takes
// milliseconds; outside of one everything works too, at the pace of the clock on the wall. The server has all its
// rules: capacity, caps, retries, expiry. What a test breaks by hand is told by the verbs: Expire a lease,
// KillWorker, Restart the server.
//
// Every method that fails ends the test with a line that says what was wanted, what was found, and the job's record.
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

// Server is a server that lives as long as its test.
type Server struct {
	t      testing.TB
	cfg    node.Config
	wire   *wire
	client *client.Client
	admin  *client.Client
	stop   func() // of the node that runs; nil while none does
}

// Start starts a server with an empty store, which ends with the test. cfg changes its settings, at most one; a busy
// rating that is not set is 0, so that the load of the machine has no say.
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

// Client calls the server without a token, which is enough for workers and those who submit.
func (s *Server) Client() *client.Client { return s.client }

// Admin calls the server with the admin token: for capacity, drain, revoke.
func (s *Server) Admin() *client.Client { return s.admin }

// Transport is what these clients send their calls by, for a test that wants one of its own: with a token, or a fault.
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
	if _, err := n.Status(ctx); err != nil { // until it is ready, calls would be told to come again in a second
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

// Submit submits a job of one type; payload is encoded as JSON, nil is {}.
func (s *Server) Submit(jobType string, payload any) lessor.JobID {
	s.t.Helper()
	job, err := s.client.Submit(context.Background(), jobType, payload, nil)
	if err != nil {
		s.t.Fatalf("lessortest: submit %s: %v", jobType, err)
	}
	return job.ID
}

// Run runs w until stop is called, or the test ends: w drains, and the test fails if it had to leave something behind.
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

// Restart stops the server and starts it again after downtime, on the same store. Nobody can reach it meanwhile.
func (s *Server) Restart(downtime time.Duration) {
	s.t.Helper()
	s.close()
	s.Advance(downtime)
	s.open()
}
