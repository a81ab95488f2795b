//go:build peers

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	childNATS       = "nats"        // fsync every two minutes, its default
	childNATSAlways = "nats always" // fsync before each answer
	natsPending     = 4096          // messages that are published and not confirmed
	natsFetch       = 500
)

// natsPeer is JetStream with a work queue on disk, in a process of its own.
func natsPeer(name, what string) peer {
	return peer{
		name: name, about: "file storage, work queue; PublishAsync, Fetch of 500, Ack without an answer",
		widths: []int{1, 4, 16},
		start: func(ctx context.Context, b *bench, width int) (peerRun, error) {
			c, err := b.spawn(ctx, what, "")
			if err != nil {
				return nil, err
			}
			r := &natsRun{child: c, width: width}
			if err := r.open(ctx); err != nil {
				return nil, errors.Join(err, r.end())
			}
			return r, nil
		},
	}
}

// serveNATS is main in a child.
func serveNATS(ctx context.Context, ln net.Listener, always bool) error {
	addr, ok := ln.Addr().(*net.TCPAddr)
	if err := ln.Close(); err != nil || !ok {
		return err
	}
	s, err := natsserver.NewServer(&natsserver.Options{
		Host: addr.IP.String(), Port: addr.Port, JetStream: true, StoreDir: os.Getenv(childData), SyncAlways: always,
		NoLog: true, NoSigs: true,
	})
	if err != nil {
		return err
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		return errors.New("the NATS server did not start")
	}
	fmt.Println("nats://" + addr.String())
	<-ctx.Done()
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

type natsRun struct {
	*child
	width    int
	conn     *nats.Conn
	stream   jetstream.JetStream
	consumer jetstream.Consumer
	held     []jetstream.Msg
}

func (r *natsRun) open(ctx context.Context) (err error) {
	if r.conn, err = nats.Connect(r.addr); err != nil {
		return err
	}
	if r.stream, err = jetstream.New(r.conn, jetstream.WithPublishAsyncMaxPending(natsPending)); err != nil {
		return err
	}
	if _, err = r.stream.CreateStream(ctx, jetstream.StreamConfig{
		Name: "bench", Subjects: []string{"bench"}, Retention: jetstream.WorkQueuePolicy,
		Storage: jetstream.FileStorage,
	}); err != nil {
		return err
	}
	r.consumer, err = r.stream.CreateConsumer(ctx, "bench", jetstream.ConsumerConfig{
		Durable: "bench", AckPolicy: jetstream.AckExplicitPolicy, AckWait: 12 * time.Hour, MaxAckPending: 1_000_000,
	})
	return err
}

func (r *natsRun) enqueue(ctx context.Context, jobs int) error {
	for range jobs {
		_, err := r.stream.PublishAsync("bench", []byte(payload), jetstream.WithStallWait(time.Minute))
		if err != nil {
			return err
		}
	}
	select {
	case <-r.stream.PublishAsyncComplete():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fetch gives n messages to fn, by as many goroutines as width says.
func (r *natsRun) fetch(ctx context.Context, n, width int, fn func(jetstream.Msg) error) error {
	var left atomic.Int64
	left.Store(int64(n))
	return concurrently(ctx, width, width, func(context.Context, int, int) error {
		for left.Load() > 0 {
			batch, err := r.consumer.Fetch(natsFetch, jetstream.FetchMaxWait(100*time.Millisecond))
			if err != nil {
				return err
			}
			for m := range batch.Messages() {
				if err := fn(m); err != nil {
					return err
				}
				left.Add(-1)
			}
		}
		return nil
	})
}

// work acknowledges messages, and returns when the server has removed all.
func (r *natsRun) work(ctx context.Context, jobs int) error {
	if err := r.fetch(ctx, jobs, r.width, jetstream.Msg.Ack); err != nil {
		return err
	}
	stream, err := r.stream.Stream(ctx, "bench")
	for err == nil {
		info, failed := stream.Info(ctx)
		if failed == nil && info.State.Msgs == 0 {
			return nil
		}
		err = errors.Join(failed, pass(ctx, time.Millisecond))
	}
	return err
}

func (r *natsRun) hold(ctx context.Context, n int) error {
	if err := r.enqueue(ctx, n); err != nil {
		return err
	}
	return r.fetch(ctx, n, 1, func(m jetstream.Msg) error {
		r.held = append(r.held, m)
		return nil
	})
}

// beat sends signs of progress, which have no answer, and waits until the server has read all.
func (r *natsRun) beat(ctx context.Context, beats int) error {
	err := concurrently(ctx, 2, beats, func(_ context.Context, _, item int) error {
		return r.held[item%len(r.held)].InProgress()
	})
	return errors.Join(err, r.conn.FlushWithContext(ctx))
}

func (r *natsRun) latency(jobs int) *latencyRun {
	send := func(ctx context.Context, body []byte) error {
		_, err := r.stream.Publish(ctx, "bench", body)
		return err
	}
	return newLatencyRun(jobs, send, func(_ context.Context, _ int, started func([]byte) error) error {
		batch, err := r.consumer.Fetch(1, jetstream.FetchMaxWait(time.Second))
		if err != nil {
			return err
		}
		for m := range batch.Messages() {
			return errors.Join(started(m.Data()), m.Ack())
		}
		return nil
	})
}

func (r *natsRun) end() error {
	if r.conn != nil {
		r.conn.Close()
	}
	return r.child.end()
}
