package redis_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"lessor/mailbox/redis"
	"lessor/worker"
)

// A mailbox on a Redis server, for whatever takes a worker.Mailbox.
func Example() {
	ctx := context.Background()
	options, err := pool.Options() // in your program: &goredis.Options{Addr: "127.0.0.1:6379"}
	if err != nil {
		fmt.Println(err)
		return
	}
	client := goredis.NewClient(options)
	defer client.Close()
	box, err := redis.New(redis.Config{Client: client, Name: "orders-" + rand.Text()})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := worker.SendJSON(ctx, box, map[string]string{"item": "book"}, nil); err != nil {
		fmt.Println(err)
		return
	}
	messages, err := box.Receive(ctx, 1, time.Minute, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range messages {
		fmt.Printf("%s\n", m.Body())
		if err := m.Acknowledge(ctx); err != nil {
			fmt.Println(err)
		}
	}
	// Output: {"item":"book"}
}
