package redis

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"lessor/worker"
)

// message is one delivery.
type message struct {
	box         *Mailbox
	id, receipt string
	body        []byte
	deliveries  int
	replyTo     string // name of a mailbox, or empty
}

// read returns the messages in the answer of the receive script.
func (b *Mailbox) read(answer any) ([]worker.Message, error) {
	rows, err := rowsOf(answer, 5)
	if err != nil {
		return nil, err
	}
	messages := make([]worker.Message, len(rows))
	for i, r := range rows {
		m := &message{box: b, id: r[0], receipt: r[1], body: []byte(r[2]), replyTo: r[4]}
		if m.deliveries, err = number(r[3]); err != nil {
			return nil, err
		}
		messages[i] = m
	}
	return messages, nil
}

// rowsOf splits the flat answer of a script into rows.
func rowsOf(answer any, width int) ([][]string, error) {
	flat, ok := answer.([]any)
	if !ok || len(flat)%width != 0 {
		return nil, fmt.Errorf("redis: an answer of %T is not a list of rows", answer)
	}
	var rows [][]string
	for len(flat) > 0 {
		row := make([]string, width)
		for i := range row {
			if row[i], ok = flat[i].(string); !ok {
				return nil, fmt.Errorf("redis: an answer has a %T where text belongs", flat[i])
			}
		}
		rows, flat = append(rows, row), flat[width:]
	}
	return rows, nil
}

func number(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, fmt.Errorf("redis: a count of deliveries: %w", err)
	}
	return n, nil
}

func (m *message) ID() string      { return m.id }
func (m *message) Receipt() string { return m.receipt }
func (m *message) Body() []byte    { return m.body }
func (m *message) Deliveries() int { return m.deliveries }

// use runs a script that changes the message unless the delivery is over.
func (m *message) use(ctx context.Context, s *redis.Script, args ...any) error {
	answer, err := m.box.run(ctx, s, m.box.keys(), append([]any{m.id, m.receipt}, args...)...)
	if err != nil {
		return err
	}
	if answer != int64(1) {
		return worker.ErrReceiptExpired
	}
	return nil
}

// Acknowledge implements worker.Message.
func (m *message) Acknowledge(ctx context.Context) error { return m.use(ctx, acknowledgeScript) }

// Nack implements worker.Message.
func (m *message) Nack(ctx context.Context, delay time.Duration) error {
	if err := worker.CheckVisibility(delay); err != nil {
		return err
	}
	return m.use(ctx, nackScript, delay.Microseconds())
}

// Return implements worker.Message.
func (m *message) Return(ctx context.Context) error { return m.use(ctx, returnScript) }

// Extend implements worker.Message.
func (m *message) Extend(ctx context.Context, d time.Duration) error {
	if err := worker.CheckVisibility(d); err != nil {
		return err
	}
	return m.use(ctx, extendScript, d.Microseconds())
}

// Reply implements worker.Message.
func (m *message) Reply(ctx context.Context, body []byte) error {
	if err := worker.CheckBody(body); err != nil {
		return err
	}
	if err := m.use(ctx, extendScript, 0); err != nil {
		return err
	}
	if m.replyTo == "" {
		return worker.ErrNoReplyTo
	}
	other := &Mailbox{cfg: Config{Client: m.box.cfg.Client, Name: m.replyTo, MaxLength: m.box.cfg.MaxLength}}
	_, err := other.put(ctx, body, "")
	return err
}
