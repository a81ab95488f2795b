// Package examples holds small, complete programs, each in its own folder. Like the lessor command they read the
// server from LESSOR_SERVER and the token from LESSOR_TOKEN. The test of this package runs them all against a server:
//
//	minimal   a worker in fifteen lines
//	drain     a long job that a deployment interrupts, and that continues where it stopped
//	mailbox   a consumer of messages, with dead letters
//	agent     a model with two tools, which extend the lease of its message
package examples
