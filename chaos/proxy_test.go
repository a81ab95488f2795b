package chaos

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// mode is what a proxy does with connections.
type mode int32

const (
	open mode = iota
	cut       // it closes them and accepts none
	deaf      // what the client sends does not arrive
	mute      // what the server answers does not arrive
)

// proxy stands between clients and a server, and can cut their connections, whole or in one direction.
type proxy struct {
	network, target string
	ln              net.Listener
	now             atomic.Int32
	pipes           sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func newProxy(t *testing.T, network, target string) *proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{network: network, target: target, ln: ln, conns: map[net.Conn]bool{}}
	p.pipes.Go(p.accept)
	t.Cleanup(func() {
		_ = ln.Close()
		p.set(cut)
		p.pipes.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.ln.Addr().String() }

// set changes the mode. Leaving a mode closes the connections that it has harmed.
func (p *proxy) set(m mode) {
	if before := mode(p.now.Swap(int32(m))); before == open && m != cut {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) accept() {
	for {
		c, err := p.ln.Accept()
		if err != nil {
			return
		}
		if mode(p.now.Load()) == cut {
			_ = c.Close()
			continue
		}
		s, err := net.Dial(p.network, p.target)
		if err != nil {
			_ = c.Close()
			continue
		}
		p.mu.Lock()
		p.conns[c], p.conns[s] = true, true
		p.mu.Unlock()
		p.pipes.Go(func() { p.pipe(s, c, deaf) })
		p.pipes.Go(func() { p.pipe(c, s, mute) })
	}
}

// pipe copies from one to the other, except in the mode that stops it: then it keeps what it has read.
func (p *proxy) pipe(to, from net.Conn, stopped mode) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, from)
		_, _ = from.Close(), to.Close()
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		for mode(p.now.Load()) == stopped {
			time.Sleep(10 * time.Millisecond)
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
