package sqs_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.uber.org/goleak"

	"lessor/mailbox/sqs"
	"lessor/worker"
	"lessor/worker/mailboxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client returns a client of the fake.
func client(f *fake) *awssqs.Client {
	return awssqs.New(awssqs.Options{
		Region: "test", BaseEndpoint: aws.String("https://sqs.test"), HTTPClient: f,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	})
}

func TestMailbox(t *testing.T) {
	servers := map[testing.TB]*fake{} // mailboxes of one test are on one server
	mailboxtest.Run(t, mailboxtest.Config{
		Open: func(t testing.TB) worker.Mailbox {
			f := servers[t]
			if f == nil {
				f = &fake{queues: map[string]*queue{}}
				servers[t] = f
			}
			b, err := sqs.Open(t.Context(), sqs.Config{Client: client(f), QueueURL: f.create("test-" + rand.Text())})
			if err != nil {
				t.Fatal(err)
			}
			return b
		},
	})
}

func TestQueueWithoutRedrivePolicyIsRefused(t *testing.T) {
	f := &fake{queues: map[string]*queue{}}
	url := f.create("jobs")
	for name, policy := range map[string]string{
		"none":           "",
		"no JSON":        "five",
		"another count":  strings.Replace(f.queues[url].policy, `"5"`, "3", 1),
		"another target": strings.Replace(f.queues[url].policy, "jobs-dead", "nowhere", 1),
		"no target":      `{"maxReceiveCount":5}`,
	} {
		f.queues[url].policy = policy
		if _, err := sqs.Open(t.Context(), sqs.Config{Client: client(f), QueueURL: url}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	for _, cfg := range []sqs.Config{
		{},
		{Client: client(f)},
		{QueueURL: url},
		{Client: client(f), QueueURL: url + "2"},
	} {
		if _, err := sqs.Open(t.Context(), cfg); err == nil {
			t.Errorf("%+v: taken", cfg)
		}
	}
}

// TestReturnWithoutACopyCounts: a role that may not send gives the message back all the same, but SQS counts the
// delivery.
func TestReturnWithoutACopyCounts(t *testing.T) {
	f := &fake{queues: map[string]*queue{}}
	b, err := sqs.Open(t.Context(), sqs.Config{Client: client(f), QueueURL: f.create("jobs")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Send(t.Context(), []byte("a"), nil); err != nil {
		t.Fatal(err)
	}
	f.refused = "SendMessage"
	for want := 1; want <= 2; want++ {
		got, err := b.Receive(t.Context(), 1, time.Minute, 0)
		if err != nil || len(got) != 1 || got[0].Deliveries() != want {
			t.Fatalf("received %v, err %v; want delivery %d", got, err, want)
		}
		if err := got[0].Return(t.Context()); err == nil || !strings.Contains(err.Error(), "AccessDenied") {
			t.Errorf("returned with error %v, want one that says why the delivery counts", err)
		}
	}
}

// TestForeignCountIsNotBelieved: every sender can write our attributes.
func TestForeignCountIsNotBelieved(t *testing.T) {
	for counted, want := range map[string]int{"many": 1, "-7": 1, "2": 3, "4": 5} {
		f := &fake{queues: map[string]*queue{}}
		b, err := sqs.Open(t.Context(), sqs.Config{Client: client(f), QueueURL: f.create("jobs")})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client(f).SendMessage(t.Context(), &awssqs.SendMessageInput{
			QueueUrl: aws.String("https://sqs.test/000000000000/jobs"), MessageBody: aws.String("a"),
			MessageAttributes: map[string]types.MessageAttributeValue{
				"lessor-deliveries": {DataType: aws.String("String"), StringValue: &counted},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := b.Receive(t.Context(), 1, time.Minute, 0); err != nil || len(got) != 1 ||
			got[0].Deliveries() != want {
			t.Errorf("a message that says it was delivered %q times: %v, err %v; want delivery %d",
				counted, got, err, want)
		}
	}
}
