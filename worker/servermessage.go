package worker

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"lessor"
	"lessor/internal/plainjson"
)

// envelope is the payload of a job that is a message. JSON stays JSON and text stays text, so that people and programs
// can read it.
type envelope struct {
	JSON    json.RawMessage `json:"json,omitempty"`
	Text    *string         `json:"text,omitempty"`
	Bytes   []byte          `json:"bytes,omitempty"`
	ReplyTo string          `json:"reply_to,omitempty"`
}

// isJSON reports whether body is JSON that encoding and decoding leave as it is.
func isJSON(body []byte) bool {
	same, err := plainjson.Marshal(json.RawMessage(body))
	return err == nil && bytes.Equal(same, body) && utf8.Valid(body)
}

// seal returns the payloads for body, the preferred one first: as JSON if it is JSON, and the shorter one of text and
// base64 in case the server refuses that. It does not accept all JSON that Go does, such as an object that names a
// field twice.
func seal(body []byte, replyTo string) (payloads []json.RawMessage, err error) {
	if err := CheckBody(body); err != nil {
		return nil, err
	}
	if len(body) > ServerMaxBody {
		return nil, fmt.Errorf("a body of %d bytes: %w (1..%d)", len(body), ErrOutOfBounds, ServerMaxBody)
	}
	last := envelope{Bytes: body, ReplyTo: replyTo}
	if utf8.Valid(body) && bytes.IndexByte(body, 0) < 0 {
		quoted, err := plainjson.Marshal(string(body))
		if err == nil && len(quoted) <= base64.StdEncoding.EncodedLen(len(body)) {
			last = envelope{Text: new(string(body)), ReplyTo: replyTo}
		}
	}
	all := []envelope{last}
	if isJSON(body) {
		all = []envelope{{JSON: body, ReplyTo: replyTo}, last}
	}
	for _, e := range all {
		payload, err := plainjson.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("encode message: %w", err)
		}
		payloads = append(payloads, payload)
	}
	return payloads, nil
}

// tryEach makes a call with the first of the values that the server does not refuse.
func tryEach(values []json.RawMessage, call func(json.RawMessage) error) (err error) {
	for _, v := range values {
		if err = call(v); !refused(err) {
			break
		}
	}
	return err
}

// unseal returns the body in a payload and the type of the mailbox for replies. The body of a job that Send did not
// submit is its payload.
func unseal(payload json.RawMessage) (body []byte, replyTo string) {
	var e envelope
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	switch err := d.Decode(&e); {
	case err != nil || e.JSON == nil && e.Text == nil && e.Bytes == nil:
		return payload, ""
	case e.JSON != nil:
		return e.JSON, e.ReplyTo
	case e.Text != nil:
		return []byte(*e.Text), e.ReplyTo
	}
	return e.Bytes, e.ReplyTo
}

// serverMessage is a job under a lease.
type serverMessage struct {
	box        *ServerMailbox
	grant      lessor.Grant
	deliveries int
	body       []byte
	replyTo    string
	journal    *Journal

	mu    sync.Mutex
	ended bool // a second end must fail, although the server would accept it
	// results are the forms of the latest reply, the preferred one first.
	results []json.RawMessage
}

func (m *serverMessage) ID() string      { return m.grant.Job.ID.String() }
func (m *serverMessage) Receipt() string { return m.grant.Lease.ID.String() }
func (m *serverMessage) Body() []byte    { return m.body }
func (m *serverMessage) Deliveries() int { return m.deliveries }

// finishPatience bounds the repetitions of a call that finishes a message. A server that is replaced takes seconds.
const finishPatience = time.Minute

// Acknowledge implements Message.
func (m *serverMessage) Acknowledge(ctx context.Context) error {
	m.mu.Lock()
	results := m.results
	m.mu.Unlock()
	return m.end(ctx, "acknowledge message", func(ctx context.Context) error {
		return tryEach(results, func(result json.RawMessage) error {
			return m.box.cfg.Client.Complete(ctx, m.grant.Lease.ID, lessor.Completion{
				WorkerID: &m.box.cfg.ID, Status: new("completed"), Result: result,
			})
		})
	})
}

// Nack implements Message.
func (m *serverMessage) Nack(ctx context.Context, delay time.Duration) error {
	if err := CheckVisibility(delay); err != nil {
		return err
	}
	if m.deliveries >= MaxDeliveries {
		return m.makeDead(ctx)
	}
	return m.release(ctx, lessor.Release{DelayMS: new(delay.Milliseconds())})
}

// Return implements Message.
func (m *serverMessage) Return(ctx context.Context) error {
	return m.release(ctx, lessor.Release{Reason: new(lessor.ReleaseUndelivered)})
}

func (m *serverMessage) release(ctx context.Context, r lessor.Release) error {
	r.WorkerID = &m.box.cfg.ID
	return m.end(ctx, "give message back", func(ctx context.Context) error {
		return m.box.cfg.Client.Release(ctx, m.grant.Lease.ID, r)
	})
}

// makeDead makes the message a dead letter.
func (m *serverMessage) makeDead(ctx context.Context) error {
	return m.end(ctx, "make message a dead letter", func(ctx context.Context) error {
		return m.box.cfg.Client.Complete(ctx, m.grant.Lease.ID, lessor.Completion{
			WorkerID: &m.box.cfg.ID, Status: new("failed"), Retryable: new(false),
			Error: new(fmt.Sprintf("delivered %d times and never acknowledged", MaxDeliveries)),
		})
	})
}

// Extend implements Message.
func (m *serverMessage) Extend(ctx context.Context, d time.Duration) error {
	if err := CheckVisibility(d); err != nil {
		return err
	}
	return m.use("extend message", func() error { return m.beat(ctx, d) })
}

func (m *serverMessage) beat(ctx context.Context, d time.Duration) error {
	_, err := m.box.cfg.Client.Heartbeat(ctx, m.grant.Lease.ID, lessor.Heartbeat{
		WorkerID: &m.box.cfg.ID, TTLMS: new(ttlOf(d)),
	})
	return err
}

// Reply implements Message. The latest reply is also the result of the job.
func (m *serverMessage) Reply(ctx context.Context, body []byte) error {
	results, err := seal(body, "")
	if err != nil {
		return err
	}
	if isJSON(body) {
		results[0] = bytes.Clone(body)
	}
	key := newKey()
	return m.finish(ctx, "reply to message", func(ctx context.Context) error {
		if err := m.beat(ctx, 0); err != nil { // only checks, at each try, that the delivery is not over
			return err
		}
		m.mu.Lock()
		m.results = results
		m.mu.Unlock()
		if m.replyTo == "" {
			return nil
		}
		_, err := m.box.submit(ctx, key, m.replyTo, body, "")
		return err
	})
}

// Journal implements Journaled.
func (m *serverMessage) Journal() *Journal { return m.journal }

// appendEntry appends to the journal of the message. It also extends the delivery.
func (m *serverMessage) appendEntry(ctx context.Context, e lessor.JournalAsk, after int) (n int, err error) {
	c, a := m.box.cfg.Client, oneEntry(m.box.cfg.ID, e, after)
	err = m.use("append to journal", func() error {
		return repeat(ctx, func() error {
			answer, err := c.Append(ctx, m.grant.Lease.ID, a)
			n = numberOf(answer)
			return err
		})
	})
	return n, err
}

// end makes the call that ends this delivery.
func (m *serverMessage) end(ctx context.Context, verb string, call func(context.Context) error) error {
	err := m.finish(ctx, verb, call)
	if err == nil {
		m.mu.Lock()
		m.ended = true
		m.mu.Unlock()
	}
	return err
}

// finish makes a call that finishes the message until a server answers, within finishPatience. Otherwise the work would
// be lost that was done for the message.
func (m *serverMessage) finish(ctx context.Context, verb string, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, finishPatience)
	defer cancel()
	return m.use(verb, func() error { return repeat(ctx, func() error { return call(ctx) }) })
}

// use makes a call unless this delivery is over.
func (m *serverMessage) use(verb string, call func() error) error {
	m.mu.Lock()
	ended := m.ended
	m.mu.Unlock()
	if ended {
		return ErrReceiptExpired
	}
	err := call()
	switch {
	case err == nil:
		return nil
	case over(err):
		return fmt.Errorf("%s: %w: %w", verb, ErrReceiptExpired, err)
	}
	return fmt.Errorf("%s: %w", verb, err)
}
