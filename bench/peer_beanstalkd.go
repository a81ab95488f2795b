package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/beanstalkd/go-beanstalk"
)

// beanstalkd runs Debian's server with its binlog; sync is the argument of -f: milliseconds between fsyncs, 0 = each
// write.
func beanstalkd(sync string) peer {
	return peer{
		name: "beanstalkd -f " + sync, about: "Debian's, binlog on disk, one connection for each caller",
		widths: []int{16, 64, 256}, version: []string{"beanstalkd", "-v"},
		start: func(ctx context.Context, b *bench, width int) (peerRun, error) {
			d, err := b.launch(ctx, "beanstalkd", func(host, port, folder string) []string {
				return []string{"-l", host, "-p", port, "-b", folder, "-f", sync}
			})
			if err != nil {
				return nil, err
			}
			r := &beanstalkRun{daemon: d, conns: make([]*beanstalk.Conn, width), held: make([][]uint64, width)}
			for i := range r.conns {
				if r.conns[i], err = beanstalk.Dial("tcp", d.addr); err != nil {
					return nil, errors.Join(err, r.end())
				}
			}
			return r, nil
		},
	}
}

type beanstalkRun struct {
	*daemon
	conns []*beanstalk.Conn
	held  [][]uint64 // by connection
}

const beanstalkTTR = 12 * time.Hour

func (r *beanstalkRun) put(conn int, body []byte) error {
	_, err := r.conns[conn].Put(body, 1, 0, beanstalkTTR)
	return err
}

func (r *beanstalkRun) enqueue(ctx context.Context, jobs int) error {
	return concurrently(ctx, len(r.conns), jobs, func(_ context.Context, caller, _ int) error {
		return r.put(caller, []byte(payload))
	})
}

func (r *beanstalkRun) work(ctx context.Context, jobs int) error {
	return concurrently(ctx, len(r.conns), jobs, func(_ context.Context, caller, _ int) error {
		id, _, err := r.conns[caller].Reserve(time.Minute)
		if err != nil {
			return err
		}
		return r.conns[caller].Delete(id)
	})
}

func (r *beanstalkRun) hold(ctx context.Context, n int) error {
	if err := r.enqueue(ctx, n); err != nil {
		return err
	}
	return concurrently(ctx, len(r.conns), n, func(_ context.Context, caller, _ int) error {
		id, _, err := r.conns[caller].Reserve(time.Minute)
		r.held[caller] = append(r.held[caller], id)
		return err
	})
}

// beat touches jobs, each on the connection that has it.
func (r *beanstalkRun) beat(ctx context.Context, beats int) error {
	total := 0
	for _, held := range r.held {
		total += len(held)
	}
	rounds := beats / total
	return concurrently(ctx, len(r.conns), len(r.conns), func(_ context.Context, _, conn int) error {
		for range rounds {
			for _, id := range r.held[conn] {
				if err := r.conns[conn].Touch(id); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// latency sends on the first connections and waits on one for each worker.
func (r *beanstalkRun) latency(jobs int) *latencyRun {
	var next atomic.Int64
	senders := len(r.conns) - latencyWorkers
	send := func(_ context.Context, body []byte) error {
		return r.put(int(next.Add(1))%senders, body)
	}
	return newLatencyRun(jobs, send, func(_ context.Context, worker int, started func([]byte) error) error {
		conn := r.conns[senders+worker]
		id, body, err := conn.Reserve(time.Second)
		if c, ok := errors.AsType[beanstalk.ConnError](err); ok && errors.Is(c.Err, beanstalk.ErrTimeout) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := started(body); err != nil {
			return err
		}
		return conn.Delete(id)
	})
}

func (r *beanstalkRun) end() error {
	for _, c := range r.conns {
		if c != nil {
			_ = c.Close() // the server goes too
		}
	}
	return r.daemon.end()
}
