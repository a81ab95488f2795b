// Package examples is a folder of small programs, one a folder, each complete. They find the server by LESSOR_SERVER
// and the token by LESSOR_TOKEN, as the lessor command does, and its own test runs them all against a server:
//
//	minimal   a worker in fifteen lines
//	drain     a long job that a deploy interrupts, and that goes on where it was
//	mailbox   a consumer of messages, with dead letters
//	agent     a model with two tools, whose message lives on what they do
package examples
