package sqs_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"lessor/mailbox/sqs"
	"lessor/worker"
)

// TestInvalidBase64: a message that says it is base64, and is not, costs the others of its batch nothing. It is
// logged, and becomes a dead letter that can be read.
func TestInvalidBase64(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, log := &fake{queues: map[string]*queue{}}, &bytes.Buffer{}
		url := f.create("jobs")
		b, err := sqs.Open(t.Context(), sqs.Config{
			Client: client(f), QueueURL: url, Log: slog.New(slog.NewTextHandler(log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		send := func(body string) {
			if _, err := b.Send(t.Context(), []byte(body), nil); err != nil {
				t.Fatal(err)
			}
		}
		send("before")
		bad, err := client(f).SendMessage(t.Context(), &awssqs.SendMessageInput{
			QueueUrl: &url, MessageBody: aws.String("no base64!"),
			MessageAttributes: map[string]types.MessageAttributeValue{
				"lessor-encoding": {DataType: aws.String("String"), StringValue: aws.String("base64")},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		send("after")
		got, err := b.Receive(t.Context(), worker.MaxBatch, time.Minute, 0)
		if err != nil || len(got) != 2 || string(got[0].Body()) != "before" || string(got[1].Body()) != "after" {
			t.Fatalf("received %d messages, err %v; want the two that can be read", len(got), err)
		}
		for _, m := range got {
			if err := m.Acknowledge(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if !strings.Contains(log.String(), *bad.MessageId) {
			t.Errorf("the log does not name message %s: %q", *bad.MessageId, log)
		}
		for range worker.MaxDeliveries { // the last one moves it
			<-time.After(time.Minute)
			if got, err := b.Receive(t.Context(), worker.MaxBatch, time.Minute, 0); err != nil || len(got) != 0 {
				t.Fatalf("received %d messages, err %v; want none", len(got), err)
			}
		}
		letters, err := b.DeadLetters(t.Context(), 10)
		if err != nil || len(letters) != 1 || letters[0].ID != *bad.MessageId ||
			string(letters[0].Body) != "no base64!" {
			t.Errorf("the dead letters are %+v, err %v; want the one that cannot be read, as it was sent", letters, err)
		}
	})
}
