package mailboxtest_test

import (
	"testing"

	"lessor/worker"
	"lessor/worker/mailboxtest"
)

// The test of a mailbox, here of the one in memory. In your package it is func TestMailbox(t *testing.T).
func Example() {
	var t *testing.T
	mailboxtest.Run(t, mailboxtest.Config{
		Open: func(testing.TB) worker.Mailbox { return worker.NewMemory(worker.MemoryConfig{}) },
	})
}
