// Mailbox consumes orders. Each message has a lease that its beats extend. The program acknowledges a message when
// its work is done, and gives it back when the work fails. A message that always fails, or that kills its consumer,
// becomes a dead letter after five deliveries.
//
//	lessor submit orders --payload '{"item": "book"}'        the payload is the body of the message
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"lessor/client"
	"lessor/worker"
)

// Order is the body of a message.
type Order struct {
	Item string `json:"item"`
}

var errUnknownItem = errors.New("there is no such item")

func pack(_ context.Context, o Order, hb *worker.Heartbeat) error {
	if o.Item == "" {
		return errUnknownItem
	}
	hb.Beat() // wherever the work makes progress
	return nil
}

// consume handles one delivery.
func consume(ctx context.Context, extender *worker.LeaseExtender, m worker.Message) error {
	var hb worker.Heartbeat
	detach, err := extender.Attach(ctx, m, &hb)
	if err != nil {
		return err
	}
	defer detach()
	order, err := worker.DecodeBody[Order](m)
	if err == nil {
		err = pack(ctx, order, &hb)
	}
	if err != nil {
		slog.Warn("An order failed", "message", m.ID(), "delivery", m.Deliveries(), "error", err)
		return m.Nack(ctx, time.Duration(m.Deliveries())*10*time.Millisecond) // grows; use minutes in production
	}
	return m.Acknowledge(ctx)
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	c, err := client.New(client.Config{Server: os.Getenv("LESSOR_SERVER"), Token: os.Getenv("LESSOR_TOKEN")})
	if err != nil {
		return err
	}
	box, err := worker.NewServerMailbox(worker.ServerMailboxConfig{Client: c, Type: "orders"})
	if err != nil {
		return err
	}
	extender := worker.NewLeaseExtender(worker.LeaseExtenderConfig{})
	for ctx.Err() == nil {
		messages, err := box.Receive(ctx, 10, 5*time.Minute, 20*time.Second)
		if err != nil && ctx.Err() == nil {
			return err
		}
		for _, m := range messages {
			if err := consume(context.WithoutCancel(ctx), extender, m); err != nil {
				slog.Warn("A message will be delivered again", "message", m.ID(), "error", err)
			}
		}
	}
	dead, err := box.DeadLetters(context.WithoutCancel(ctx), 100)
	for _, d := range dead {
		fmt.Fprintf(os.Stdout, "dead letter after %d deliveries: %s\n", d.Deliveries, d.Body)
	}
	return err
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
