package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"
)

const (
	pollMemory = 20.0 // KiB of server memory for a request that waits
	pollCPU    = 2.0  // percent of one core for all of them
	pollTime   = 10 * time.Second
)

// polls measures what requests that wait for work cost the server: each on its own connection, by its own worker.
func polls(ctx context.Context, b *bench) (err error) {
	count := b.size.of(10_000, 2_000, 100)
	watched := pollTime
	if b.size == smoke {
		watched = time.Second
	}
	c, err := b.spawn(ctx, childLessor, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.end()) }()
	if err := c.awaitReady(ctx); err != nil {
		return err
	}
	before, _, err := c.memory()
	if err != nil {
		return err
	}
	conns, err := c.poll(ctx, count)
	defer func() {
		for _, conn := range conns {
			_ = conn.Close() // the server has ended
		}
	}()
	if err != nil {
		return err
	}
	if err := pass(ctx, time.Second); err != nil { // until all wait
		return err
	}
	cpu, start := c.cpuTime(), time.Now()
	if err := pass(ctx, watched); err != nil {
		return err
	}
	percent := 100 * (c.cpuTime() - cpu).Seconds() / time.Since(start).Seconds()
	after, _, err := c.memory()
	if err != nil {
		return err
	}
	if n, err := answered(ctx, conns); err != nil || n > 0 {
		return errors.Join(err, fmt.Errorf("%d of %d requests did not wait", n, count))
	}
	each := (after - before) * 1024 / float64(count)
	b.setting("%d connections, each with one request with wait_ms 30000, for %s; SQLite", count, watched)
	b.table("KiB each|% of a core", []string{fmt.Sprintf("%.1f|%.2f", each, percent)})
	b.atMost("KiB of memory for each", each, pollMemory)
	b.atMost("percent of a core for all", percent, pollCPU)
	return nil
}

// poll sends requests that wait, each on a connection of its own.
func (c *child) poll(ctx context.Context, count int) (conns []net.Conn, err error) {
	host := strings.TrimPrefix(c.addr, "http://")
	var d net.Dialer
	for i := range count {
		conn, err := d.DialContext(ctx, "tcp", host)
		if err != nil {
			return conns, err
		}
		conns = append(conns, conn)
		body := fmt.Sprintf(`{"worker_id":"waiter-%d","types":["bench"],"wait_ms":30000}`, i)
		if _, err := fmt.Fprintf(conn, "POST /api/system/scheduler/leases/request HTTP/1.1\r\nHost: %s\r\n"+
			"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", host, len(body), body); err != nil {
			return conns, err
		}
	}
	return conns, nil
}

// pass lets time pass.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answered counts the connections on which an answer lies.
func answered(ctx context.Context, conns []net.Conn) (n int, err error) {
	var count atomic.Int64
	err = concurrently(ctx, 100, len(conns), func(_ context.Context, _, item int) error {
		if err := conns[item].SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			return err
		}
		if got, _ := conns[item].Read(make([]byte, 1)); got > 0 { // a time-out is what is hoped for
			count.Add(1)
		}
		return nil
	})
	return int(count.Load()), err
}
