// Package redis implements worker.Mailbox on a Redis server (7.0 or newer, or Valkey).
//
// Every change is one script, so a message is always in exactly one place, and only the clock of the server counts.
// Every key contains "{NAME}", so that a mailbox lies on one node of a cluster:
//
//	lessor:{NAME}:due    sorted set  messages with deliveries left, by the time at which they become visible
//	lessor:{NAME}:last   sorted set  messages at their last delivery, by its end
//	lessor:{NAME}:dead   list        dead letters, oldest first
//	lessor:{NAME}:body   hash        id → body         :count  hash  id → deliveries
//	lessor:{NAME}:reply  hash        id → mailbox for replies
//	lessor:{NAME}:held   hash        id → receipt of the current delivery
//	lessor:{NAME}:sent   sorted set  ids of the last minute, at most 100,000, by the time at which they were sent
//	lessor:{NAME}:given:CALL  list   ids that a call of Receive got, for some seconds
//
// The client repeats a script if the connection breaks before the answer arrives. The last two keys make a repetition
// of Send store nothing, and one of Receive return the same deliveries.
//
// Messages are as durable as Redis is configured to be: without appendonly and "appendfsync always", a crash of the
// server loses messages that Send has accepted. When the clock of the server jumps, the ends of deliveries move with
// it.
package redis
