package node

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// Pipe returns a listener for Serve and an HTTP client that is connected to it inside the process: the whole API
// without a network. The client comes from a loopback address, whatever host its URLs name.
func Pipe() (net.Listener, *http.Client) {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	return l, &http.Client{Transport: &http.Transport{DialContext: l.dial, MaxIdleConnsPerHost: 64}}
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- pipeConn{there}:
		return here, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept returns the server's end of the next connection.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close refuses further connections.
func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns a loopback address without a port.
func (l *pipeListener) Addr() net.Addr { return loopback }

var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}

// pipeConn is a connection from a loopback address.
type pipeConn struct{ net.Conn }

func (pipeConn) RemoteAddr() net.Addr { return loopback }
