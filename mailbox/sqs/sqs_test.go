package sqs_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
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
	for _, cfg := range []sqs.Config{{}, {Client: client(f)}, {QueueURL: url}, {Client: client(f), QueueURL: url + "2"}} {
		if _, err := sqs.Open(t.Context(), cfg); err == nil {
			t.Errorf("%+v: taken", cfg)
		}
	}
}
