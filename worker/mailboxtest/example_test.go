package mailboxtest_test

import (
	"fmt"
	"testing"

	"lessor/worker"
	"lessor/worker/mailboxtest"
)

// The test of a mailbox, here of the one in memory. In your package it is func TestMailbox(t *testing.T).
func Example() {
	testMailbox := func(t *testing.T) {
		mailboxtest.Run(t, mailboxtest.Config{
			Open: func(testing.TB) worker.Mailbox { return worker.NewMemory(worker.MemoryConfig{}) },
		})
	}
	fmt.Println(passes(testMailbox))
	// Output: true
}
