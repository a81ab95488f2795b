package worker_test

import (
	"testing"
	"time"

	"lessor/worker"
	"lessor/worker/mailboxtest"
)

func TestMemory(t *testing.T) {
	mailboxtest.Run(t, mailboxtest.Config{
		Open: func(testing.TB) worker.Mailbox { return worker.NewMemory(worker.MemoryConfig{}) },
		OpenSmall: func(_ testing.TB, length int) worker.Mailbox {
			return worker.NewMemory(worker.MemoryConfig{MaxLength: length})
		},
	})
}

// sendAndReceive returns the first delivery of a new message.
func sendAndReceive(t *testing.T, box worker.Mailbox, visibility time.Duration) worker.Message {
	t.Helper()
	if _, err := box.Send(t.Context(), []byte("work"), nil); err != nil {
		t.Fatal(err)
	}
	got := receive(t, box, 1, visibility, 0)
	if len(got) != 1 {
		t.Fatalf("%d messages, want the one that was sent", len(got))
	}
	return got[0]
}

func receive(t *testing.T, box worker.Mailbox, n int, visibility, wait time.Duration) []worker.Message {
	t.Helper()
	got, err := box.Receive(t.Context(), n, visibility, wait)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
