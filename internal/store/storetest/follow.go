package storetest

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"

	"lessor"
	"lessor/internal/scheduler"
)

// position is the position of a node in the streams of the others.
func (b *bed) position() (p scheduler.Position) {
	b.Helper()
	b.view(func(v scheduler.View) (err error) {
		p, err = v.Position(b.Context())
		return err
	})
	return p
}

// now is the clock of the store.
func (b *bed) now() (at lessor.Instant) {
	b.view(func(v scheduler.View) error { at = v.Now(); return nil })
	return at
}

// follow returns what was published after p, and advances p. A gap in the numbers fails the test.
func (b *bed) follow(p scheduler.Position) (published []string) {
	b.Helper()
	b.view(func(v scheduler.View) error {
		changes, err := v.Changes(b.Context(), p)
		for _, c := range changes {
			if c.N != p[c.Stream]+1 {
				b.Fatalf("stream %d goes from %d to %d", c.Stream, p[c.Stream], c.N)
			}
			p[c.Stream] = c.N
			if len(c.Data) > 0 {
				published = append(published, string(c.Data))
			}
		}
		return err
	})
	return published
}

// followSeesLatest: Changes returns all that was committed before the call, at any point of a transaction, and Now is
// not before them.
func followSeesLatest(a, b *bed) {
	position := a.position()
	var published lessor.Instant
	publish := func(text string) {
		for start := b.now(); b.now() == start; { // not in the millisecond that the other node has read
		}
		b.update(func(tx scheduler.Tx) error {
			b.must(tx.Gate(b.Context()))
			published = tx.Now()
			return tx.Publish(b.Context(), []byte(text))
		})
	}
	publish("one")
	a.same("in a view", a.follow(position), []string{"one"})
	read := func(tx scheduler.Tx) (got string) {
		changes, err := tx.Changes(a.Context(), position)
		a.must(err)
		for _, c := range changes {
			position[c.Stream] = c.N
			got += string(c.Data)
		}
		if tx.Now() < published {
			a.Errorf("now is %v, and %q was published at %v", tx.Now(), got, published)
		}
		return got
	}
	a.update(func(tx scheduler.Tx) error {
		publish("two")
		a.must(tx.Gate(a.Context()))
		a.same("behind the gate", read(tx), "two")
		a.same("twice", read(tx), "")
		return nil
	})
	a.update(func(tx scheduler.Tx) error {
		_, err := tx.Due(a.Context(), 1, 1)
		a.must(err)
		publish("three")
		_, err = tx.Setting(a.Context(), "x")
		a.must(err)
		a.same("after another read", read(tx), "three")
		return nil
	})
}

// changesHaveNoGaps publishes from two nodes, with failures in between, while a third node follows.
func changesHaveNoGaps(a, b *bed) {
	const each = 200
	follower := &bed{T: a.T, Store: a.open()}
	defer func() { a.must(follower.Close()) }()
	position := follower.position()
	var writers sync.WaitGroup
	for i, node := range []*bed{a, b} {
		writers.Go(func() {
			for n := range each {
				err := node.Update(node.Context(), func(tx scheduler.Tx) error {
					text := fmt.Sprintf("%d:%d", i, n)
					if err := tx.SaveSetting(node.Context(), text, []byte("x")); err != nil {
						return err
					}
					if n%7 == 3 {
						return errTest
					}
					return tx.Publish(node.Context(), []byte(text))
				})
				if err != nil && !errors.Is(err, errTest) {
					node.Error(err)
				}
			}
		})
	}
	done := make(chan bool)
	go func() { writers.Wait(); close(done) }()
	seen, last := map[string]int{}, map[string]int{}
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		for _, text := range follower.follow(position) {
			seen[text]++
			node := text[:1]
			n, _ := strconv.Atoi(text[2:]) // as written above
			if was, ok := last[node]; ok && n <= was {
				a.Fatalf("node %s published %d after %d", node, was, n)
			}
			last[node] = n
		}
	}
	want := map[string]int{}
	for n := range each {
		if n%7 != 3 {
			want[fmt.Sprintf("0:%d", n)], want[fmt.Sprintf("1:%d", n)] = 1, 1
		}
	}
	a.same("what was published, and how often it was seen", seen, want)
	for _, text := range a.follow(scheduler.Position{}) {
		if text[0] == '0' {
			a.Fatalf("a node reads its own change: %s", text)
		}
	}
	if p := maps.Clone(position); len(follower.follow(p)) != 0 {
		a.Fatal("there is a change after the last")
	}
}
