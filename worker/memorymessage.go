package worker

import (
	"container/heap"
	"context"
	"time"
)

// memoryMessage is one delivery of a letter.
type memoryMessage struct {
	box        *Memory
	letter     *letter
	receipt    string
	deliveries int
}

func (m *memoryMessage) ID() string      { return m.letter.id }
func (m *memoryMessage) Receipt() string { return m.receipt }
func (m *memoryMessage) Body() []byte    { return m.letter.body }
func (m *memoryMessage) Deliveries() int { return m.deliveries }

// ifCurrent calls do with the box locked, unless this delivery is over.
func (m *memoryMessage) ifCurrent(ctx context.Context, do func(now time.Time)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.box.mu.Lock()
	defer m.box.mu.Unlock()
	now := time.Now()
	m.box.settle(now)
	if m.letter.receipt != m.receipt {
		return ErrReceiptExpired
	}
	do(now)
	return nil
}

// Acknowledge implements Message.
func (m *memoryMessage) Acknowledge(ctx context.Context) error {
	return m.ifCurrent(ctx, func(time.Time) {
		heap.Remove(&m.box.hidden, m.letter.place)
		m.letter.receipt = ""
		delete(m.box.letters, m.letter.id)
	})
}

// Nack implements Message.
func (m *memoryMessage) Nack(ctx context.Context, delay time.Duration) error {
	if err := CheckVisibility(delay); err != nil {
		return err
	}
	return m.ifCurrent(ctx, func(now time.Time) {
		if delay == 0 || m.deliveries >= MaxDeliveries {
			m.box.giveBack(m.letter)
			return
		}
		m.letter.receipt = ""
		m.hide(now.Add(delay))
	})
}

// Return implements Message.
func (m *memoryMessage) Return(ctx context.Context) error {
	return m.ifCurrent(ctx, func(time.Time) {
		m.letter.deliveries--
		m.box.giveBack(m.letter)
	})
}

// Extend implements Message.
func (m *memoryMessage) Extend(ctx context.Context, d time.Duration) error {
	if err := CheckVisibility(d); err != nil {
		return err
	}
	return m.ifCurrent(ctx, func(now time.Time) {
		if until := now.Add(d); until.After(m.letter.until) {
			m.hide(until)
		}
	})
}

// hide changes the end of the letter's visibility.
func (m *memoryMessage) hide(until time.Time) {
	m.letter.until = until
	heap.Fix(&m.box.hidden, m.letter.place)
}

// Reply implements Message.
func (m *memoryMessage) Reply(ctx context.Context, body []byte) error {
	if err := CheckBody(body); err != nil {
		return err
	}
	if err := m.ifCurrent(ctx, func(time.Time) {}); err != nil {
		return err
	}
	if m.letter.replyTo == nil {
		return ErrNoReplyTo
	}
	_, err := m.letter.replyTo.Send(ctx, body, nil)
	return err
}

// hiddenLetters is a heap; the letter whose visibility ends next is first.
type hiddenLetters []*letter

func (h hiddenLetters) Len() int           { return len(h) }
func (h hiddenLetters) Less(i, j int) bool { return h[i].until.Before(h[j].until) }

func (h hiddenLetters) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *hiddenLetters) Push(x any) {
	l, _ := x.(*letter)
	l.place = len(*h)
	*h = append(*h, l)
}

// Pop implements heap.Interface.
func (h *hiddenLetters) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return l
}
