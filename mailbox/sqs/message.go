package sqs

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"lessor/worker"
)

// The attributes of messages.
const (
	encodingAttribute = "lessor-encoding"
	replyToAttribute  = "lessor-reply-to"
	idAttribute       = "lessor-id"         // of the message that this one stands for
	countedAttribute  = "lessor-deliveries" // that it had
	base64Encoding    = "base64"
)

// message is one delivery.
type message struct {
	box         *Mailbox
	id, receipt string
	body        []byte
	deliveries  int
	replyTo     string // URL of a queue, or empty
	from        types.Message

	mu    sync.Mutex
	until time.Time // the end of the delivery
}

// message returns a received message.
func (b *Mailbox) message(from types.Message, until time.Time) (*message, error) {
	m := &message{
		box: b, id: idOf(from), receipt: aws.ToString(from.ReceiptHandle),
		replyTo: aws.ToString(from.MessageAttributes[replyToAttribute].StringValue), until: until, from: from,
	}
	var err error
	if m.body, err = decode(from); err != nil {
		return nil, err
	}
	count := from.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)]
	if m.deliveries, err = strconv.Atoi(count); err != nil {
		return nil, fmt.Errorf("sqs: message %s was received %q times", m.id, count)
	}
	// Every sender can write the attribute, so an invalid count is ignored.
	if n, err := strconv.Atoi(aws.ToString(from.MessageAttributes[countedAttribute].StringValue)); err == nil && n > 0 {
		m.deliveries += min(n, worker.MaxDeliveries)
	}
	return m, nil
}

// idOf returns the id that Send returned to the sender of a message.
func idOf(from types.Message) string {
	if id := aws.ToString(from.MessageAttributes[idAttribute].StringValue); id != "" {
		return id
	}
	return aws.ToString(from.MessageId)
}

func (m *message) ID() string      { return m.id }
func (m *message) Receipt() string { return m.receipt }
func (m *message) Body() []byte    { return m.body }
func (m *message) Deliveries() int { return m.deliveries }

// left returns how long the delivery still lasts, or ErrReceiptExpired.
func (m *message) left() (time.Duration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if left := time.Until(m.until); left > 0 {
		return left, nil
	}
	return 0, worker.ErrReceiptExpired
}

// last sets the end of the delivery.
func (m *message) last(until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.until = until
}

// Acknowledge implements worker.Message.
func (m *message) Acknowledge(ctx context.Context) error {
	if _, err := m.left(); err != nil {
		return err
	}
	_, err := m.box.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &m.box.url, ReceiptHandle: &m.receipt})
	if err == nil {
		m.last(time.Time{})
	}
	return refusal("acknowledge", err)
}

// Nack implements worker.Message.
func (m *message) Nack(ctx context.Context, delay time.Duration) error {
	if err := worker.CheckVisibility(delay); err != nil {
		return err
	}
	if _, err := m.left(); err != nil {
		return err
	}
	if m.deliveries >= worker.MaxDeliveries {
		delay = 0
	}
	err := m.hide(ctx, delay)
	if err == nil {
		m.last(time.Time{})
	}
	return refusal("nack", err)
}

// Return implements worker.Message. SQS cannot take a receive back, so Return replaces the message with a copy that
// carries the number of deliveries. If the copy cannot be sent, the message itself becomes visible, the delivery
// counts, and Return returns an error.
func (m *message) Return(ctx context.Context) error {
	if _, err := m.left(); err != nil {
		return err
	}
	if err := m.replace(ctx, m.box.url, m.deliveries-1); err != nil {
		if show := m.hide(ctx, 0); show != nil {
			return refusal("return", show)
		}
		m.last(time.Time{})
		return err
	}
	m.last(time.Time{})
	return nil
}

// replace sends a copy of the message to a queue and then removes the message. If the removal fails, both exist.
func (m *message) replace(ctx context.Context, url string, deliveries int) error {
	attributes := maps.Clone(m.from.MessageAttributes)
	if attributes == nil {
		attributes = map[string]types.MessageAttributeValue{}
	}
	attributes[idAttribute], attributes[countedAttribute] = textValue(m.id), textValue(strconv.Itoa(deliveries))
	_, err := m.box.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &url, MessageBody: m.from.Body,
		MessageAttributes: attributes,
	})
	if err != nil {
		return fmt.Errorf("sqs: send a copy: %w", err)
	}
	_, err = m.box.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &m.box.url, ReceiptHandle: &m.receipt})
	return refusal("replace", err)
}

// Extend implements worker.Message.
func (m *message) Extend(ctx context.Context, d time.Duration) error {
	if err := worker.CheckVisibility(d); err != nil {
		return err
	}
	left, err := m.left()
	if err != nil || d <= left {
		return err
	}
	until := time.Now().Add(d) // read before the call, so that the delivery does not end later here than in the queue
	if err := m.hide(ctx, d); err != nil {
		return refusal("extend", err)
	}
	m.last(until)
	return nil
}

// hideAnew makes the delivery last for d from now. A d of zero shows the message, which Receive cannot ask for at once.
// The queue may have hidden a message that Receive waited for at any moment since the call, so only the time from the
// call is certain. If hideAnew fails, the delivery lasts for that time.
func (m *message) hideAnew(ctx context.Context, d time.Duration) {
	until := time.Now().Add(d)
	if err := m.hide(ctx, d); err == nil {
		m.last(until)
	}
}

func (m *message) hide(ctx context.Context, d time.Duration) error {
	_, err := m.box.client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &m.box.url, ReceiptHandle: &m.receipt, VisibilityTimeout: seconds(d),
	})
	return err
}

// Reply implements worker.Message.
func (m *message) Reply(ctx context.Context, body []byte) error {
	if err := worker.CheckBody(body); err != nil {
		return err
	}
	if _, err := m.left(); err != nil {
		return err
	}
	if m.replyTo == "" {
		return worker.ErrNoReplyTo
	}
	_, err := send(ctx, m.box.client, m.replyTo, body, "")
	return err
}

// refusal turns the errors of SQS about a receipt into ErrReceiptExpired.
func refusal(verb string, err error) error {
	if err == nil {
		return nil
	}
	if _, gone := errors.AsType[*types.MessageNotInflight](err); gone {
		return worker.ErrReceiptExpired
	}
	if _, gone := errors.AsType[*types.ReceiptHandleIsInvalid](err); gone {
		return worker.ErrReceiptExpired
	}
	return fmt.Errorf("sqs: %s: %w", verb, err)
}

// encode returns a body as text: unchanged if SQS accepts it, else as base64.
func encode(body []byte) (string, map[string]types.MessageAttributeValue) {
	attributes := map[string]types.MessageAttributeValue{}
	if isText(body) {
		return string(body), attributes
	}
	attributes[encodingAttribute] = textValue(base64Encoding)
	return base64.StdEncoding.EncodeToString(body), attributes
}

func decode(m types.Message) ([]byte, error) {
	body := aws.ToString(m.Body)
	if aws.ToString(m.MessageAttributes[encodingAttribute].StringValue) != base64Encoding {
		return []byte(body), nil
	}
	decoded, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		return nil, fmt.Errorf("sqs: decode the body of message %s: %w", aws.ToString(m.MessageId), err)
	}
	return decoded, nil
}

// isText reports whether SQS accepts the body: it allows the characters of XML 1.0.
func isText(body []byte) bool {
	if !utf8.Valid(body) {
		return false
	}
	for _, r := range string(body) {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return false
		}
	}
	return true
}

func textValue(s string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
}
