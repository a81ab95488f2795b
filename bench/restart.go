package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"lessor/client"
	"lessor/node"
)

const (
	restartBound  = 5.0   // seconds until a server is ready
	restartMemory = 512.0 // MiB
)

// restart measures how long a server takes to be ready, and how much memory it takes, with many jobs and leases.
func restart(ctx context.Context, b *bench, db *database) error {
	e := extent{queued: b.size.of(1_000_000, 200_000, 2_000), tenants: 1, held: b.size.of(100_000, 20_000, 500)}
	sqlite, err := b.restarted(ctx, nil, e)
	if err != nil {
		return err
	}
	postgres, err := b.restarted(ctx, db, e)
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	b.setting("%d jobs queued, %d leases held; the server is a process of its own; ready = /health/ready answers 200",
		e.queued, e.held)
	b.table("|ready after s|CPU s|memory MiB, ready|memory MiB, most", []string{
		sqlite.row("SQLite"), postgres.row("PostgreSQL"),
	})
	for _, r := range []struct {
		store string
		*restartFigures
	}{{"SQLite", sqlite}, {"PostgreSQL", postgres}} {
		b.atMost(r.store+": seconds until ready", r.ready.Seconds(), restartBound)
		b.atMost(r.store+": MiB at most", r.peak, restartMemory)
	}
	return nil
}

type restartFigures struct {
	ready, cpu   time.Duration
	memory, peak float64 // MiB
}

func (r *restartFigures) row(store string) string {
	return fmt.Sprintf("%s|%.2f|%.2f|%.0f|%.0f", store, r.ready.Seconds(), r.cpu.Seconds(), r.memory, r.peak)
}

// restarted fills a server, stops it, and starts it in a process of its own. db is nil for SQLite.
func (b *bench) restarted(ctx context.Context, db *database, e extent) (_ *restartFigures, err error) {
	g, err := b.fill(ctx, db, e)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.end()) }()
	return b.restartAlone(ctx, g.filling, e)
}

// restartAlone stops a server and starts it in a process of its own, which must know all jobs and leases.
func (b *bench) restartAlone(ctx context.Context, s *filling, e extent) (_ *restartFigures, err error) {
	if err := s.shut(); err != nil {
		return nil, err
	}
	start := time.Now()
	c, err := b.spawnIn(ctx, childLessor, s.store, s.cfg.Data)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.end()) }()
	if err := c.awaitReady(ctx); err != nil {
		return nil, err
	}
	f := &restartFigures{ready: time.Since(start), cpu: c.cpuTime()}
	if f.memory, f.peak, err = c.memory(); err != nil {
		return nil, err
	}
	return f, c.holds(ctx, e.queued, e.held)
}

// holds checks that the child knows all jobs and leases.
func (c *child) holds(ctx context.Context, queued, held int) error {
	caller, err := client.New(client.Config{Server: c.addr})
	if err != nil {
		return err
	}
	st, err := caller.Status(ctx)
	if err == nil && (st.QueueDepth.Normal != queued || st.ActiveLeases != held) {
		err = fmt.Errorf("the server has %d jobs and %d leases", st.QueueDepth.Normal, st.ActiveLeases)
	}
	return err
}

// filling is a server in this process, to be filled.
type filling struct {
	*server
	store string       // its database; "" = SQLite
	end   func() error // removes what it has left
}

// fillable starts a server, on a fresh database if db is not nil. Alter changes its settings unless it is nil.
func (b *bench) fillable(ctx context.Context, db *database, alter func(*node.Config)) (*filling, error) {
	if db == nil {
		s, err := b.start(ctx, alter)
		if err != nil {
			return nil, err
		}
		return &filling{server: s, end: s.end}, nil
	}
	cluster, err := b.startNodes(ctx, db, 1, alter)
	if err != nil {
		return nil, err
	}
	return &filling{cluster.nodes[0], db.URL(cluster.name), func() error { return cluster.end(ctx) }}, nil
}

// awaitReady waits until the child says that it is ready.
func (c *child) awaitReady(ctx context.Context) error {
	caller := &http.Client{Timeout: time.Minute}
	defer caller.CloseIdleConnections()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.addr+"/health/ready", nil)
		if err != nil {
			return err
		}
		answer, err := caller.Do(r)
		if err != nil {
			return err
		}
		if err := answer.Body.Close(); err != nil {
			return err
		}
		if answer.StatusCode == http.StatusOK {
			return nil
		}
		if err := pass(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// memory returns the resident memory of the child, now and at most, in MiB; 0 without /proc.
func (c *child) memory() (now, most float64, err error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(c.cmd.Process.Pid) + "/status")
	if errors.Is(err, os.ErrNotExist) {
		return 0, 0, nil
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.ParseFloat(fields[1], 64) // not a number in other lines
		switch fields[0] {
		case "VmRSS:":
			now = kib / 1024
		case "VmHWM:":
			most = kib / 1024
		}
	}
	return now, most, err
}
