package main

import (
	"context"
	"errors"
	"os"

	"lessor/node"
)

// server is a Lessor in this process with a database of its own. Its synchronous setting is the default, FULL.
type server struct {
	*node.Node
	cfg   node.Config
	stop  context.CancelFunc
	ended chan error
}

// manyUnits is a capacity that never limits a grant.
const manyUnits = 1_000_000

// config returns settings whose capacity does not limit grants and does not depend on the load of the machine.
func config(folder string) node.Config {
	cfg := node.Config{Data: folder, Listen: "127.0.0.1:0"}
	cfg.Capacity.TotalUnits, cfg.Capacity.ReserveUnits = manyUnits, -1
	cfg.Capacity.Busy = new(0)
	return cfg
}

// start starts a server in this process; alter changes its settings.
func (b *bench) start(ctx context.Context, alter func(*node.Config)) (*server, error) {
	folder, err := os.MkdirTemp(b.folder, "lessor-bench-")
	if err != nil {
		return nil, err
	}
	cfg := config(folder)
	if alter != nil {
		alter(&cfg)
	}
	s := &server{cfg: cfg}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return s, nil
}

func (s *server) open(ctx context.Context) error {
	n, err := node.Open(ctx, s.cfg, nil)
	if err != nil {
		return err
	}
	s.Node, s.ended = n, make(chan error, 1)
	ctx, s.stop = context.WithCancel(ctx)
	go func() { s.ended <- n.Run(ctx) }()
	return nil
}

// shut stops the server if it runs.
func (s *server) shut() error {
	if s.stop == nil {
		return nil
	}
	s.stop()
	s.stop = nil
	return errors.Join(<-s.ended, s.Close())
}

// reopen closes the server and starts it on the same database, with nothing in memory.
func (s *server) reopen(ctx context.Context) error {
	if err := s.shut(); err != nil {
		return err
	}
	return s.open(ctx)
}

// end stops the server and removes its data.
func (s *server) end() error { return errors.Join(s.shut(), os.RemoveAll(s.cfg.Data)) }
