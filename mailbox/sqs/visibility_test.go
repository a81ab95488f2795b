package sqs_test

import (
	"testing"

	"lessor/mailbox/sqs"
	"lessor/worker"
)

// TestMessageThatCannotBeShownIsDelivered: the client cannot ask for a visibility of zero, so Receive shows each
// message again. If that fails, the messages show by themselves a second later, and their deliveries count.
func TestMessageThatCannotBeShownIsDelivered(t *testing.T) {
	f := &fake{queues: map[string]*queue{}, refused: "ChangeMessageVisibility"}
	b, err := sqs.Open(t.Context(), sqs.Config{Client: client(f), QueueURL: f.create("jobs")})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"a", "b"} {
		if _, err := b.Send(t.Context(), []byte(body), nil); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := b.Receive(t.Context(), worker.MaxBatch, 0, 0); err != nil || len(got) != 2 {
		t.Errorf("received %d messages, err %v; want both", len(got), err)
	}
}
