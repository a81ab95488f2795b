package sqs_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

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

// TestDeliveryEndsNoLaterThanInTheQueue: the queue hides a message before its answer arrives, and at an unknown moment
// if the receiver waits for the message.
func TestDeliveryEndsNoLaterThanInTheQueue(t *testing.T) {
	for _, c := range []struct {
		name             string
		visibility, wait time.Duration
		sentAfter, lag   time.Duration
		refused          string
		want             time.Duration // after the answer
	}{
		{name: "prompt answer", visibility: 10 * time.Second, want: 10 * time.Second},
		{name: "late answer", visibility: 10 * time.Second, lag: 4 * time.Second, want: 10 * time.Second},
		{
			name: "late answer, and the message cannot be hidden anew", visibility: 10 * time.Second,
			lag: 4 * time.Second, refused: "ChangeMessageVisibility", want: 6 * time.Second,
		},
		{
			name: "message after a wait that is longer than the visibility", visibility: 2 * time.Second,
			wait: 20 * time.Second, sentAfter: 5 * time.Second, want: 2 * time.Second,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{queues: map[string]*queue{}, refused: c.refused, lag: c.lag}
				url := f.create("jobs")
				b, err := sqs.Open(t.Context(), sqs.Config{Client: client(f), QueueURL: url})
				if err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(c.sentAfter, func() {
					if _, err := b.Send(t.Context(), []byte("a"), nil); err != nil {
						t.Error(err)
					}
				})
				synctest.Wait()
				got, err := b.Receive(t.Context(), 1, c.visibility, c.wait)
				if err != nil || len(got) != 1 {
					t.Fatalf("received %d messages, err %v; want one", len(got), err)
				}
				if hidden := time.Until(f.queues[url].messages[0].visibleAt); hidden != c.want {
					t.Errorf("the queue hides the message for %s more, want %s", hidden, c.want)
				}
				<-time.After(c.want - time.Millisecond)
				if err := got[0].Extend(t.Context(), 0); err != nil {
					t.Errorf("the delivery ended before its time: %v", err)
				}
				<-time.After(time.Millisecond)
				if err := got[0].Extend(t.Context(), 0); !errors.Is(err, worker.ErrReceiptExpired) {
					t.Errorf("error %v when the queue shows the message, want %v", err, worker.ErrReceiptExpired)
				}
			})
		})
	}
}
