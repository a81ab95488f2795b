package sqs_test

import (
	"context"
	"fmt"
	"time"

	"lessor/mailbox/sqs"
)

// A mailbox on an SQS queue, for whatever takes a worker.Mailbox. The client is one of the AWS SDK.
func Example() {
	ctx := context.Background()
	queues := &fake{queues: map[string]*queue{}}
	box, err := sqs.Open(ctx, sqs.Config{Client: client(queues), QueueURL: queues.create("orders")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close()
	if _, err := box.Send(ctx, []byte("a book"), nil); err != nil {
		fmt.Println(err)
	}
	messages, err := box.Receive(ctx, 1, time.Minute, 0)
	if err != nil || len(messages) == 0 {
		fmt.Println("no message", err)
		return
	}
	fmt.Println(string(messages[0].Body()), messages[0].Acknowledge(ctx))
	// Output: a book <nil>
}
