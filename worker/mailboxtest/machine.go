package mailboxtest

import (
	"cmp"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lessor/worker"
)

const (
	steps = 40
	// realLives is less than the hundred of rapid, because each takes real time.
	realLives = 12
)

// randomLives calls mailboxes at random and checks what must always hold: a message is in exactly one place, the
// number of deliveries rises by one, receipts are unique, a receipt that has expired changes nothing, and no message is
// lost.
func randomLives(cfg Config, run func(name string, test func(t *testing.T))) {
	if cfg.Unit == 0 && cfg.Lives == 0 {
		run("RandomLives", func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				cfg.run(t, func(b *bed) {
					live(b, func(what string, n int) int { return rapid.IntRange(0, n-1).Draw(rt, what) })
				})
			})
		})
		return
	}
	for range cmp.Or(cfg.Lives, realLives) {
		seed := rand.Uint64()
		run("RandomLife"+strconv.FormatUint(seed, 10), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0)) // the name of the test has the seed
			cfg.run(t, func(b *bed) { live(b, func(_ string, n int) int { return r.IntN(n) }) })
		})
	}
}

// known is what its callers know of the mailbox from its answers.
type known struct {
	*bed
	draw     func(what string, n int) int // 0..n-1
	letters  []*entry
	receipts map[string]bool
}

// entry is one message and where it must be. The end of a delivery is known to lie between two instants.
type entry struct {
	id, body   string
	deliveries int
	held       worker.Message   // the latest delivery, nil before the first and after its end was seen
	old        []worker.Message // deliveries known to be over
	over       span             // when the latest delivery, or the delay after it, ends
	gone       bool             // acknowledged
}

// span is an instant of which only the bounds are known.
type span struct{ from, to time.Time }

func (s span) plus(d time.Duration) span { return span{s.from.Add(d), s.to.Add(d)} }

// during calls the mailbox and returns the time of the call.
func during(call func()) span {
	from := time.Now()
	call()
	return span{from, time.Now()}
}

func live(b *bed, draw func(string, int) int) {
	k := &known{bed: b, draw: draw, receipts: map[string]bool{}}
	moves := []func(){k.sendOne, k.take, k.take, k.acknowledge, k.nack, k.giveBack, k.extend, k.misuse, k.wait}
	for range steps {
		moves[draw("move", len(moves))]()
	}
	k.settle()
}

func (k *known) sendOne() {
	body := "body " + strconv.Itoa(len(k.letters))
	k.letters = append(k.letters, &entry{id: k.send(body)[0], body: body})
}

// take receives and checks that each message may be here.
func (k *known) take() {
	n, visibility := 1+k.draw("batch", 3), k.units(1+k.draw("visibility", 3))
	k.receive(n, visibility, 0)
}

func (k *known) receive(n int, visibility, wait time.Duration) int {
	k.Helper()
	var got []worker.Message
	at := during(func() {
		var err error
		got, err = k.Receive(k.Context(), n, visibility, wait)
		k.must(err)
	})
	if len(got) > n {
		k.Fatalf("a batch of %d where %d were asked for", len(got), n)
	}
	for _, m := range got {
		e := k.find(m.ID())
		switch {
		case e == nil || string(m.Body()) != e.body:
			k.Fatalf("message %s with body %q was never sent", m.ID(), m.Body())
		case e.gone:
			k.Fatalf("message %s was received after it was acknowledged", e.id)
		case at.to.Before(e.over.from):
			k.Fatalf("message %s was received while it was hidden", e.id)
		case m.Deliveries() != e.deliveries+1 || m.Deliveries() > worker.MaxDeliveries:
			k.Fatalf("message %s: delivery %d after %d", e.id, m.Deliveries(), e.deliveries)
		case m.Receipt() == "" || k.receipts[m.Receipt()]:
			k.Fatalf("message %s: receipt %q is not fresh", e.id, m.Receipt())
		}
		k.receipts[m.Receipt()] = true
		e.end()
		e.deliveries, e.held, e.over = m.Deliveries(), m, at.plus(visibility)
	}
	return len(got)
}

// end notes that the latest delivery is over.
func (e *entry) end() {
	if e.held != nil {
		e.old, e.held = append(e.old, e.held), nil
	}
}

func (k *known) find(id string) *entry {
	for _, e := range k.letters {
		if e.id == id {
			return e
		}
	}
	return nil
}

// use makes a call on a delivery, if one is held, and reports whether it was still valid.
func (k *known) use(what string, call func(m worker.Message) error) (*entry, span, bool) {
	k.Helper()
	var held []*entry
	for _, e := range k.letters {
		if e.held != nil {
			held = append(held, e)
		}
	}
	if len(held) == 0 {
		return nil, span{}, false
	}
	e := held[k.draw("which", len(held))]
	var err error
	at := during(func() { err = call(e.held) })
	switch {
	case err == nil && !at.from.Before(e.over.to):
		k.Fatalf("%s of message %s passed after its time", what, e.id)
	case err != nil && at.to.Before(e.over.from):
		k.Fatalf("%s of message %s in its time: %v", what, e.id, err)
	case err != nil:
		k.wants(err, worker.ErrReceiptExpired, what)
		e.end()
	}
	return e, at, err == nil
}

func (k *known) acknowledge() {
	e, _, ok := k.use("Acknowledge", func(m worker.Message) error { return m.Acknowledge(k.Context()) })
	if ok {
		e.gone = true
		e.end()
	}
}

func (k *known) nack() {
	delay := k.units(k.draw("delay", 3))
	e, at, ok := k.use("Nack", func(m worker.Message) error { return m.Nack(k.Context(), delay) })
	if ok {
		e.over = at.plus(delay)
		e.end()
	}
}

func (k *known) giveBack() {
	e, at, ok := k.use("Return", func(m worker.Message) error { return m.Return(k.Context()) })
	if ok {
		e.over = at
		e.end()
		e.deliveries--
	}
}

func (k *known) extend() {
	d := k.units(k.draw("extension", 4))
	e, at, ok := k.use("Extend", func(m worker.Message) error { return m.Extend(k.Context(), d) })
	if ok {
		until := at.plus(d)
		if until.from.After(e.over.from) {
			e.over.from = until.from
		}
		if until.to.After(e.over.to) {
			e.over.to = until.to
		}
	}
}

// misuse uses a delivery that is over.
func (k *known) misuse() {
	for _, e := range k.letters {
		if n := len(e.old); n > 0 {
			k.bed.over(e.old[k.draw("old", n)], "of a delivery that is over")
			return
		}
	}
}

func (k *known) wait() { k.pass(k.units(1+k.draw("time", 2)) / 2) }

// settle waits until nothing is hidden any more, receives everything, and finds every message in exactly one place.
func (k *known) settle() {
	k.pass(k.units(4) + k.cfg.Late)
	for k.receive(worker.MaxBatch, k.units(600), k.cfg.Late) > 0 {
	}
	dead := map[string]int{}
	letters, err := k.DeadLetters(k.Context(), len(k.letters)+1)
	k.must(err)
	for _, d := range letters {
		dead[d.ID]++
		if e := k.find(d.ID); e == nil || string(d.Body) != e.body || d.Deliveries != worker.MaxDeliveries ||
			e.deliveries != d.Deliveries {
			k.Fatalf("dead letter %+v was not delivered %d times", d, worker.MaxDeliveries)
		}
	}
	for _, e := range k.letters {
		places := dead[e.id]
		if e.gone {
			places++
		}
		if e.held != nil && time.Now().Before(e.over.from) {
			places++
		}
		if places != 1 {
			k.Fatalf("message %s is in %d places (acknowledged %t, dead %d) after %d deliveries",
				e.id, places, e.gone, dead[e.id], e.deliveries)
		}
	}
}
