package store

import (
	"encoding/binary"
	"testing"

	"lessor/internal/rules"
)

func TestSpecsAreBounded(t *testing.T) {
	c := newSpecs(100 * specOverhead)
	var newest *rules.Spec
	for i := range 10_000 {
		s := &rules.Spec{Seq: int64(i), Payload: make([]byte, specOverhead)}
		binary.BigEndian.PutUint32(s.ID.UUID[:], uint32(i))
		c.Put(s)
		if i%3 == 0 {
			c.Drop(s.ID)
		} else {
			newest = s
		}
		if i%10 == 0 {
			c.Put(s) // again, under the same id
		}
		sum := 0
		for _, s := range c.specs {
			sum += specSize(s)
		}
		if c.bytes != sum || c.bytes > c.max || len(c.order) > 2*len(c.specs)+1024 {
			t.Fatalf("after %d: %d bytes, counted as %d of %d; %d ids for %d specs", i, sum, c.bytes, c.max,
				len(c.order), len(c.specs))
		}
	}
	if n := len(c.specs); n != 49 {
		t.Errorf("%d specs are at hand, want the 50 that fit but for the last, which was dropped", n)
	}
	if c.FindAt(&rules.Turn{Job: newest.ID, Seq: newest.Seq}) != newest {
		t.Errorf("the newest spec is not at hand")
	}
	huge := &rules.Spec{Seq: 10_000, Payload: make([]byte, c.max)}
	c.Put(huge)
	if c.Find(huge.ID) != nil || c.bytes != 0 {
		t.Errorf("a spec larger than the cache: %d bytes", c.bytes)
	}
}
