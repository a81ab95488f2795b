// Package redis is a worker.Mailbox on a Redis server (7.0 or newer, or Valkey).
//
// Every change is one script, so that a message is never in two places or in none, and the only clock is the
// server's. With "{NAME}" in every key, a mailbox lies on one node of a cluster:
//
//	lessor:{NAME}:due    sorted set  messages with deliveries left, by the time from which they can be seen
//	lessor:{NAME}:last   sorted set  messages at their last delivery, by its end
//	lessor:{NAME}:dead   list        dead letters, oldest first
//	lessor:{NAME}:body   hash        id → body         :count  hash  id → deliveries
//	lessor:{NAME}:reply  hash        id → mailbox for replies
//	lessor:{NAME}:held   hash        id → receipt of the delivery under way
//
// What it keeps is as durable as Redis is told to be: without appendonly and appendfsync always, a crash of the
// server loses messages that were acknowledged to the sender. A step of the server's clock moves the ends of
// deliveries.
package redis
