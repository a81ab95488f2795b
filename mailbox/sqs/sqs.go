package sqs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"lessor/worker"
)

// Config configures a Mailbox. Client and QueueURL are required.
type Config struct {
	Client *sqs.Client
	// QueueURL is the address of the queue.
	QueueURL string
	// Log receives messages that cannot be read (warn). The default is slog.Default.
	Log *slog.Logger
}

// Mailbox is a connection to a queue.
type Mailbox struct {
	client    *sqs.Client
	url, dead string // URLs of the queue and of its dead letters
	log       *slog.Logger
	ended     context.Context
	end       context.CancelFunc
}

// Open checks the redrive policy of the queue and returns a Mailbox.
func Open(ctx context.Context, cfg Config) (*Mailbox, error) {
	if cfg.Client == nil || cfg.QueueURL == "" {
		return nil, errors.New("sqs: no client, or no queue")
	}
	out, err := cfg.Client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &cfg.QueueURL, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameRedrivePolicy},
	})
	if err != nil {
		return nil, fmt.Errorf("sqs: read the queue's attributes: %w", err)
	}
	var policy struct {
		Target string      `json:"deadLetterTargetArn"`
		Count  json.Number `json:"maxReceiveCount"` // a number or a text, as it was set
	}
	text := out.Attributes[string(types.QueueAttributeNameRedrivePolicy)]
	if text != "" {
		if err := json.Unmarshal([]byte(text), &policy); err != nil {
			return nil, fmt.Errorf("sqs: read the redrive policy: %w", err)
		}
	}
	if count, err := policy.Count.Int64(); err != nil || count != worker.MaxDeliveries || policy.Target == "" {
		return nil, fmt.Errorf("sqs: the queue needs a redrive policy with maxReceiveCount %d, and has %q",
			worker.MaxDeliveries, text)
	}
	name := policy.Target[strings.LastIndexByte(policy.Target, ':')+1:]
	dead, err := cfg.Client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	if err != nil {
		return nil, fmt.Errorf("sqs: find the queue of dead letters: %w", err)
	}
	b := &Mailbox{client: cfg.Client, url: cfg.QueueURL, dead: aws.ToString(dead.QueueUrl), log: cfg.Log}
	if b.log == nil {
		b.log = slog.Default()
	}
	b.ended, b.end = context.WithCancel(context.Background()) // of the mailbox, whose Close ends it
	return b, nil
}

// Send implements worker.Mailbox.
func (b *Mailbox) Send(ctx context.Context, body []byte, replyTo worker.Mailbox) (id string, err error) {
	if err := worker.CheckBody(body); err != nil {
		return "", err
	}
	if b.ended.Err() != nil {
		return "", worker.ErrMailboxClosed
	}
	url := ""
	if replyTo != nil {
		other, same := replyTo.(*Mailbox)
		if !same {
			return "", fmt.Errorf("replies from a mailbox on SQS cannot go to a %T", replyTo)
		}
		url = other.url
	}
	return send(ctx, b.client, b.url, body, url)
}

func send(ctx context.Context, client *sqs.Client, url string, body []byte, replyTo string) (id string, err error) {
	text, attributes := encode(body)
	if replyTo != "" {
		attributes[replyToAttribute] = textValue(replyTo)
	}
	out, err := client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &url, MessageBody: &text,
		MessageAttributes: attributes,
	})
	if err != nil {
		return "", fmt.Errorf("sqs: send: %w", err)
	}
	return aws.ToString(out.MessageId), nil
}

// Receive implements worker.Mailbox.
func (b *Mailbox) Receive(
	ctx context.Context, maxMessages int, visibility, wait time.Duration,
) ([]worker.Message, error) {
	if err := worker.CheckReceive(maxMessages, visibility, wait); err != nil {
		return nil, err
	}
	call, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.ended, cancel)()
	if b.ended.Err() != nil {
		return nil, worker.ErrMailboxClosed
	}
	asked := time.Now() // the queue hides the messages at some moment after this
	got, err := b.receive(call, b.url, maxMessages, max(visibility, time.Second), wait)
	switch {
	case err != nil && b.ended.Err() != nil:
		return nil, worker.ErrMailboxClosed
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	messages := make([]worker.Message, 0, len(got))
	for _, m := range got {
		message, err := b.message(m, asked.Add(visibility))
		if err != nil { // the others must not be lost with it
			b.log.Warn("A message cannot be read; it becomes a dead letter after its last delivery", "error", err)
			continue
		}
		if message.deliveries > worker.MaxDeliveries { // a copy: SQS counts only the deliveries of the copy
			// If this fails, SQS moves the copy later.
			_ = message.replace(ctx, b.dead, worker.MaxDeliveries)
			continue
		}
		messages = append(messages, message)
		if time.Since(asked) >= min(visibility/10, maxUncertainty) {
			message.hideAnew(ctx, visibility)
		}
	}
	return messages, nil
}

// maxUncertainty is the accuracy that the package promises for all times.
const maxUncertainty = time.Second

func (b *Mailbox) receive(
	ctx context.Context, url string, maxMessages int, visibility, wait time.Duration,
) ([]types.Message, error) {
	out, err := b.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: int32(maxMessages), VisibilityTimeout: seconds(visibility),
		WaitTimeSeconds:       seconds(wait),
		MessageAttributeNames: []string{"All"}, // a copy has them too
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			types.MessageSystemAttributeNameApproximateReceiveCount,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("sqs: receive: %w", err)
	}
	return out.Messages, nil
}

// seconds rounds up, because a message that is hidden for too short a time would be processed twice.
func seconds(d time.Duration) int32 { return int32((d + time.Second - 1) / time.Second) }

// DeadLetters implements worker.Mailbox. Reading hides them from other readers for a moment. A body that cannot be
// decoded is returned as it was sent.
func (b *Mailbox) DeadLetters(ctx context.Context, limit int) ([]worker.DeadLetter, error) {
	var read []types.Message
	defer func() {
		for _, m := range read { // not before, or they would be read again; at worst they show by themselves
			_, _ = b.client.ChangeMessageVisibility(context.WithoutCancel(ctx),
				&sqs.ChangeMessageVisibilityInput{QueueUrl: &b.dead, ReceiptHandle: m.ReceiptHandle})
		}
	}()
	for len(read) < limit {
		got, err := b.receive(ctx, b.dead, min(limit-len(read), worker.MaxBatch), deadHidden, 0)
		if err != nil {
			return nil, err
		}
		if len(got) == 0 {
			break
		}
		read = append(read, got...)
	}
	letters := make([]worker.DeadLetter, len(read))
	for i, m := range read {
		body, err := decode(m)
		if err != nil {
			body = []byte(aws.ToString(m.Body))
		}
		letters[i] = worker.DeadLetter{ID: idOf(m), Body: body, Deliveries: worker.MaxDeliveries}
	}
	return letters, nil
}

// deadHidden is long enough to read a thousand dead letters.
const deadHidden = time.Minute

// Close implements worker.Mailbox. The messages stay in the queue. A message on its way to a receiver is delivered
// again when its visibility is over.
func (b *Mailbox) Close() error {
	b.end()
	return nil
}
