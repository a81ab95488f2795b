package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// asynqPeer runs Asynq on Debian's Redis with its append-only file; sync is appendfsync.
func asynqPeer(sync string) peer {
	return peer{
		name: "Asynq, appendfsync " + sync, about: "Debian's Redis; Enqueue by that many callers, that many workers",
		widths: []int{64, 256, 1000}, version: []string{"redis-server", "--version"},
		start: func(ctx context.Context, b *bench, width int) (peerRun, error) {
			d, err := b.launch(ctx, "redis-server", func(host, port, folder string) []string {
				return []string{
					"--bind", host, "--port", port, "--dir", folder, "--appendonly", "yes", "--appendfsync", sync,
					"--save", "", "--loglevel", "warning",
				}
			})
			if err != nil {
				return nil, err
			}
			client := redis.NewClient(&redis.Options{Addr: d.addr, PoolSize: min(width, 256)})
			return &asynqRun{
				daemon: d, redis: client, client: asynq.NewClientFromRedisClient(client),
				width: width,
			}, nil
		},
	}
}

type asynqRun struct {
	*daemon
	redis  *redis.Client
	client *asynq.Client
	width  int
}

func (r *asynqRun) enqueue(ctx context.Context, jobs int) error {
	return concurrently(ctx, r.width, jobs, func(ctx context.Context, _, _ int) error {
		_, err := r.client.EnqueueContext(ctx, asynq.NewTask("bench", []byte(payload)))
		return err
	})
}

func (r *asynqRun) work(ctx context.Context, jobs int) error {
	var done sync.WaitGroup
	done.Add(jobs)
	server := r.server(r.width)
	if err := server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		done.Done()
		return nil
	})); err != nil {
		return err
	}
	defer server.Shutdown()
	done.Wait()
	return r.emptied(ctx)
}

func (r *asynqRun) server(workers int) *asynq.Server {
	return asynq.NewServerFromRedisClient(r.redis, asynq.Config{
		Concurrency: workers, LogLevel: asynq.FatalLevel, TaskCheckInterval: 10 * time.Millisecond,
	})
}

// emptied waits until every task is marked as done.
func (r *asynqRun) emptied(ctx context.Context) error {
	inspector := asynq.NewInspectorFromRedisClient(r.redis)
	for {
		info, err := inspector.GetQueueInfo("default")
		if err != nil || info.Size == 0 {
			return err
		}
		if err := pass(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

func (r *asynqRun) latency(jobs int) *latencyRun {
	tasks := make(chan []byte)
	server := r.server(latencyWorkers)
	failed := server.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		tasks <- t.Payload()
		return nil
	}))
	var stop sync.Once
	send := func(ctx context.Context, body []byte) error {
		_, err := r.client.EnqueueContext(ctx, asynq.NewTask("bench", body))
		return errors.Join(failed, err)
	}
	return newLatencyRun(jobs, send, func(ctx context.Context, _ int, started func([]byte) error) error {
		select {
		case body := <-tasks:
			return started(body)
		case <-ctx.Done():
			stop.Do(server.Shutdown)
			return nil
		}
	})
}

func (r *asynqRun) end() error { return errors.Join(r.redis.Close(), r.daemon.end()) }
