package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"
)

// errMissing is the error of a peer whose program is not installed.
var errMissing = errors.New("is not installed")

// daemon is a peer's server in a process of its own, with a folder that is removed with it.
type daemon struct {
	cmd    *exec.Cmd
	addr   string
	folder string
}

// launch starts a program that listens on a free port of the loopback address, and waits until it accepts
// connections. args makes its arguments of the host, the port and the folder.
func (b *bench) launch(
	ctx context.Context, program string, args func(host, port, folder string) []string,
) (_ *daemon, err error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, fmt.Errorf("%s %w", program, errMissing)
	}
	d := &daemon{}
	if d.addr, err = freeAddress(ctx); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(d.addr)
	if err != nil {
		return nil, err
	}
	if d.folder, err = os.MkdirTemp(b.folder, "peer-bench-"); err != nil {
		return nil, err
	}
	d.cmd = exec.CommandContext(ctx, path, args(host, port, d.folder)...)
	if err := d.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(d.folder))
	}
	if err := d.awaitStart(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s did not start: %w", program, err), d.end())
	}
	return d, nil
}

// awaitStart waits until the server accepts connections.
func (d *daemon) awaitStart(ctx context.Context) error {
	var dialer net.Dialer
	for deadline := time.Now().Add(10 * time.Second); ; {
		conn, err := dialer.DialContext(ctx, "tcp", d.addr)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			return err
		}
		if err := pass(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// freeAddress returns a loopback address on which nobody listens now.
func freeAddress(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return ln.Addr().String(), ln.Close()
}

func (d *daemon) cpuTime() time.Duration {
	p, _ := readProcess(d.cmd.Process.Pid)
	return p.used
}

// end stops the server and removes its folder.
func (d *daemon) end() error {
	if err := d.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	_ = d.cmd.Wait() // it was killed
	return os.RemoveAll(d.folder)
}
