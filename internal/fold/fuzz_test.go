package fold_test

import (
	"errors"
	"testing"

	"lessor"
	"lessor/internal/fold"
	"lessor/internal/rules"
)

// FuzzFollow reads a change that another node, of whatever release, may have written. The fold applies it or
// must be rebuilt, and a change that is refused before it is applied leaves nothing behind.
func FuzzFollow(f *testing.F) {
	for _, fn := range []func(n *node){
		func(n *node) { n.Enqueue(turn(3)); n.Delay(noon + 5) },
		func(n *node) { n.grant("w") },
		func(n *node) { held := n.grant("w"); n.Free(held); n.Enqueue(held.Turn) },
		func(n *node) { n.Remove(turn(2)); n.ChangeSettings(); n.AskForEvents() },
		func(n *node) { n.Cancel(n.grant("w")) },
		func(n *node) { n.TakeAway(n.grant("w"), noon) },
		func(n *node) { n.Enqueue(rules.Turn{Lane: 9, Seq: 4}) },
		func(n *node) { _ = n.PublishEvent(&lessor.StreamEvent{JobID: turn(1).Job, TenantID: acme}) },
	} {
		a := twoQueued(f)
		f.Add(a.commit(func() { fn(a) }).Data)
	}
	f.Add([]byte{200})
	f.Fuzz(func(t *testing.T, data []byte) {
		b, before := twoQueued(t), twoQueued(t)
		change := fold.Change{Stream: 1, N: 1, Data: data}
		named, err := b.Named([]fold.Change{change})
		if err == nil {
			_, err = b.Follow([]fold.Change{change}, named, noon)
		}
		if err != nil && !errors.Is(err, fold.ErrStale) {
			t.Errorf("refused with %v, want ErrStale", err)
		}
		if err != nil {
			if err := b.Differs(before.Fold); err != nil {
				t.Errorf("what was refused has changed the fold: %v", err)
			}
		}
	})
}

// twoQueued returns the fold of a node that knows two queued turns.
func twoQueued(t testing.TB) *node {
	t.Helper()
	n := newNode(1)
	n.Enqueue(turn(1))
	n.Enqueue(turn(2))
	return n
}
