package storetest

import (
	"bytes"
	"time"
)

// nodesMeetWorkers has each of two nodes tell what it knows, and hear what the other told last.
func nodesMeetWorkers(a, b *bed) {
	for _, c := range []struct {
		node *bed
		tell string
		want []byte // nil = nothing
	}{{a, "one", nil}, {b, "two", []byte("one")}, {a, "three", []byte("two")}, {b, "four", []byte("three")}} {
		got, err := c.node.Meet(c.node.Context(), []byte(c.tell), time.Minute)
		c.node.must(err)
		if !bytes.Equal(bytes.Join(got, nil), c.want) {
			a.Fatalf("who told %q heard %q, want %q", c.tell, got, c.want)
		}
	}
	if got, err := a.Meet(a.Context(), nil, 0); err != nil || len(got) != 0 {
		a.Fatalf("what is older than its life is told: %q, %v", got, err)
	}
}
