package memory

import (
	"bytes"
	"cmp"
	"iter"
	"math"
	"strings"

	"lessor"
)

// key names a row. Tables use the parts that they need; rows are in the order of the parts.
type key struct {
	text string
	id   lessor.UUID
	n, m int64
}

func (k key) compare(o key) int { return k.order(&o) }

// order is compare without copies. It tests parts for equality first, because most are equal.
func (k *key) order(o *key) int {
	switch {
	case k.text != o.text:
		return strings.Compare(k.text, o.text)
	case k.id != o.id:
		return bytes.Compare(k.id[:], o.id[:])
	case k.n != o.n:
		return cmp.Compare(k.n, o.n)
	}
	return cmp.Compare(k.m, o.m)
}

// last is behind all keys with this text and this id.
func (k key) last() key {
	k.n, k.m = math.MaxInt64, math.MaxInt64
	return k
}

// table is an ordered map whose versions share what they have in common: a copy of it is a snapshot. It is an AVL tree,
// of which a change copies one path.
type table[V any] struct{ root *node[V] }

type node[V any] struct {
	key         key
	value       V
	left, right *node[V]
	height      int
}

func (t table[V]) get(k key) (v V, ok bool) {
	for n := t.root; n != nil; {
		switch c := k.order(&n.key); {
		case c == 0:
			return n.value, true
		case c < 0:
			n = n.left
		default:
			n = n.right
		}
	}
	return v, false
}

func (t table[V]) has(k key) bool {
	_, ok := t.get(k)
	return ok
}

func (t *table[V]) put(k key, v V) { t.root = t.root.put(k, v) }

func (t *table[V]) drop(k key) { t.root = t.root.drop(k) }

// from returns the rows from k on; back those before k, the last first.
func (t table[V]) from(k key) iter.Seq2[key, V] {
	return func(yield func(key, V) bool) { t.root.from(k, yield) }
}

func (t table[V]) back(k key) iter.Seq2[key, V] {
	return func(yield func(key, V) bool) { t.root.back(k, yield) }
}

// all returns the rows in order.
func (t table[V]) all() iter.Seq2[key, V] {
	return func(yield func(key, V) bool) { t.root.each(yield) }
}

// under returns the rows with this text and this id.
func (t table[V]) under(text string, id lessor.UUID) iter.Seq2[key, V] {
	return func(yield func(key, V) bool) {
		for k, v := range t.from(key{text: text, id: id, n: math.MinInt64, m: math.MinInt64}) {
			if k.text != text || k.id != id || !yield(k, v) {
				return
			}
		}
	}
}

func (n *node[V]) put(k key, v V) *node[V] {
	if n == nil {
		return &node[V]{key: k, value: v, height: 1}
	}
	switch c := k.order(&n.key); {
	case c == 0:
		return &node[V]{key: k, value: v, left: n.left, right: n.right, height: n.height}
	case c < 0:
		return n.with(n.left.put(k, v), n.right)
	}
	return n.with(n.left, n.right.put(k, v))
}

func (n *node[V]) drop(k key) *node[V] {
	if n == nil {
		return nil
	}
	switch c := k.order(&n.key); {
	case c < 0:
		return n.with(n.left.drop(k), n.right)
	case c > 0:
		return n.with(n.left, n.right.drop(k))
	case n.left == nil:
		return n.right
	case n.right == nil:
		return n.left
	}
	next := n.right
	for next.left != nil {
		next = next.left
	}
	return next.with(n.left, n.right.drop(next.key))
}

// with returns n with other branches, in balance: their heights differ by two at most.
func (n *node[V]) with(left, right *node[V]) *node[V] {
	if left == n.left && right == n.right {
		return n
	}
	switch l, r := left.tall(), right.tall(); {
	case l > r+1:
		if left.right.tall() > left.left.tall() {
			up := left.right
			return up.over(left.over(left.left, up.left), n.over(up.right, right))
		}
		return left.over(left.left, n.over(left.right, right))
	case r > l+1:
		if right.left.tall() > right.right.tall() {
			up := right.left
			return up.over(n.over(left, up.left), right.over(up.right, right.right))
		}
		return right.over(n.over(left, right.left), right.right)
	}
	return n.over(left, right)
}

func (n *node[V]) over(left, right *node[V]) *node[V] {
	return &node[V]{key: n.key, value: n.value, left: left, right: right, height: 1 + max(left.tall(), right.tall())}
}

func (n *node[V]) tall() int {
	if n == nil {
		return 0
	}
	return n.height
}

func (n *node[V]) from(k key, yield func(key, V) bool) bool {
	if n == nil {
		return true
	}
	if n.key.order(&k) < 0 {
		return n.right.from(k, yield)
	}
	return n.left.from(k, yield) && yield(n.key, n.value) && n.right.each(yield)
}

// each yields all rows in order.
func (n *node[V]) each(yield func(key, V) bool) bool {
	return n == nil || n.left.each(yield) && yield(n.key, n.value) && n.right.each(yield)
}

func (n *node[V]) back(k key, yield func(key, V) bool) bool {
	if n == nil {
		return true
	}
	if n.key.order(&k) >= 0 {
		return n.left.back(k, yield)
	}
	return n.right.back(k, yield) && yield(n.key, n.value) && n.left.back(k, yield)
}
