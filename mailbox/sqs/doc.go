// Package sqs implements worker.Mailbox on a standard queue of Amazon SQS, or of a server with the same protocol.
//
// The queue must have a redrive policy with a maxReceiveCount of worker.MaxDeliveries; Open refuses any other queue.
// SQS itself moves a message to the dead letters, at the first Receive after its last delivery is over.
//
// The package promises no more than SQS does. Messages may arrive in any order and, rarely, twice. Times are whole
// seconds, so a message may be hidden, and a receiver may wait, up to a second longer than asked. The message itself
// checks, with a monotonic clock, that an overdue receipt fails at once. It counts from the call of Receive; if the
// answer took long, for example because the receiver waited for the message, one more call hides the message anew. A
// message cannot be hidden for more than twelve hours in total.
//
// Return must not count a delivery, but SQS counts every receive. So Return sends a copy with the attributes
// lessor-id and lessor-deliveries to the queue, and removes the message. The role of the worker must be allowed to
// send to the queue, and to the queue of dead letters, to which a receiver moves a copy after its last delivery. The
// retention period of a copy starts anew. If the copy cannot be sent, for example because the message has ten
// attributes, the delivery counts. So does a delivery to a receiver whose context ended before the answer arrived.
//
// A body that is not text is sent as base64 and has the attribute lessor-encoding. A message that has the attribute and
// no base64 is logged and not delivered; SQS makes it a dead letter after its last receive. The attribute
// lessor-reply-to is the URL of the queue for replies. The sender of a message chooses that queue, so the role of the
// worker should allow no other queues.
package sqs
