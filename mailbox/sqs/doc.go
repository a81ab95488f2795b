// Package sqs is a worker.Mailbox on a standard queue of Amazon SQS, or of what speaks its protocol.
//
// The queue must have a redrive policy with a maxReceiveCount of worker.MaxDeliveries: SQS itself moves a message to
// the dead letters, when somebody receives after its last delivery is over. Open refuses a queue without.
//
// What SQS does not promise is not promised here: messages may come in any order and, rarely, twice; times are in
// whole seconds, so that a message is hidden, and a receiver waits, for up to a second longer than asked. That an
// overdue receipt fails at once is kept by the message itself, on a monotonic clock. One message cannot be hidden for
// more than twelve hours in all.
//
// A message that is returned counts no delivery, but SQS counts every receive. So Return puts a copy into the queue,
// with the attributes lessor-id and lessor-deliveries, and removes the message: the worker's role must be allowed to
// send to the queue, and to that of the dead letters, into which a copy is moved by whoever receives it after its last
// delivery. A copy begins its retention period anew. Where it cannot be sent (a message with ten attributes, say) the
// delivery counts. So does one that was on its way to a receiver whose context ended.
//
// A body that is not text is sent as base64, marked by the attribute lessor-encoding; lessor-reply-to is the URL of
// the queue for replies. Whoever may send to the queue chooses where replies go: the worker's role should allow no
// other queues.
package sqs
