package mailboxtest

import "lessor/worker"

func nacked(b *bed) {
	b.send("a")
	m := b.one(60)
	b.must(m.Nack(b.Context(), b.units(2)))
	b.over(m, "after Nack")
	b.pass(b.unit)
	b.none("before its delay was over")
	b.pass(b.unit)
	m = b.one(60)
	if m.Deliveries() != 2 {
		b.Errorf("delivery %d, want 2", m.Deliveries())
	}
	b.must(m.Nack(b.Context(), 0))
	if m = b.one(1); m.Deliveries() != 3 {
		b.Errorf("delivery %d, want 3", m.Deliveries())
	}
}

// returned gives a message back more often than it may be delivered, which must not count. Then it lets
// deliveries expire, which must count.
func returned(b *bed) {
	ids := b.send("a")
	for n := range 2 * worker.MaxDeliveries {
		m := b.one(60)
		if m.ID() != ids[0] || string(m.Body()) != "a" || m.Deliveries() != 1 {
			b.Fatalf("message %s with body %q, delivery %d after %d returns; want %s, delivery 1",
				m.ID(), m.Body(), m.Deliveries(), n, ids[0])
		}
		b.must(m.Return(b.Context()))
		b.over(m, "after Return")
	}
	for n := 1; n <= worker.MaxDeliveries; n++ {
		b.dead()
		m := b.one(1)
		if m.Deliveries() != n {
			b.Fatalf("delivery %d, want %d", m.Deliveries(), n)
		}
		b.pass(b.unit)
	}
	b.none("after its last delivery")
	b.dead(ids...)
}

func returnedLast(b *bed) {
	ids := b.send("a")
	for range worker.MaxDeliveries - 1 {
		b.must(b.one(60).Nack(b.Context(), 0))
	}
	for range 2 {
		m := b.one(60)
		if m.Deliveries() != worker.MaxDeliveries {
			b.Fatalf("delivery %d, want %d", m.Deliveries(), worker.MaxDeliveries)
		}
		b.must(m.Return(b.Context()))
		b.dead()
	}
	b.must(b.one(60).Nack(b.Context(), 0))
	b.none("after its last delivery")
	b.dead(ids...)
}
