package redis_test

import (
	"context"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"lessor/mailbox/redis"
	"lessor/worker"
)

// A mailbox on a Redis server, for whatever takes a worker.Mailbox.
func Example() {
	client := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:6379"})
	defer client.Close()
	box, err := redis.New(redis.Config{Client: client, Name: "orders"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := worker.SendJSON(context.Background(), box, map[string]string{"item": "book"}, nil); err != nil {
		fmt.Println(err)
	}
}
