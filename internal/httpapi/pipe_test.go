package httpapi

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
)

// pipes is a network inside the process, so that a server can run in a bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5377} }

func (p *pipes) dial() (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// served is a server that answers over pipes, inside a bubble.
type served struct {
	*server
	net    *pipes
	client *http.Client
	halt   func() error // stops the HTTP server and returns what Serve returned
}

// serve runs test in a bubble with a server that is up.
func serve(t *testing.T, test func(s *served)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &served{server: start(t), net: newPipes()}
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return s.net.dial()
		}}
		s.client = &http.Client{Transport: transport}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- Serve(ctx, s.net, s.API) }()
		s.halt = sync.OnceValue(func() error {
			cancel()
			return <-ended
		})
		defer func() {
			transport.CloseIdleConnections()
			if err := s.halt(); err != nil {
				t.Errorf("Serve returned %v, want nil", err)
			}
		}()
		test(s)
	})
}

// send sends a request over the pipe, without a token.
func (s *served) send(ctx context.Context, method, path, body string, edit ...func(*http.Request)) (*http.Response,
	error,
) {
	r := request(method, path, body)
	r.RequestURI = ""
	for _, e := range edit {
		e(r)
	}
	return s.client.Do(r.WithContext(ctx))
}
