package lanes

import (
	"math/rand/v2"
	"testing"
)

// TestHeapKeepsOrder grows a heap to several levels, with many equal keys, and takes from the middle.
func TestHeapKeepsOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	var h heap
	var ros roster[int]
	for range 300 {
		ros.add(nil)
	}
	for step := range 10_000 {
		num := int32(r.IntN(300))
		key := r.Int64N(100)
		switch {
		case !ros.in(num):
			h.push(ros.pos, slot{key, num, num})
		case r.IntN(3) == 0:
			h.remove(ros.pos, num)
		case r.IntN(50) == 0:
			h.lower(ros.pos, 30, 0)
		default:
			h.rekey(ros.pos, num, key)
		}
		if len(h) > 0 && r.IntN(2) == 0 {
			h.raise(ros.pos, h[0].key+key)
		}
		in := 0
		for num := range int32(300) {
			if ros.in(num) {
				in++
			}
			checkSlot(h, ros.pos, num, ros.in(num), "slot", func(format string, args ...any) {
				t.Fatalf("step %d: "+format, append([]any{step}, args...)...)
			})
		}
		if in != len(h) {
			t.Fatalf("step %d: %d items say that they are in a heap of %d", step, in, len(h))
		}
	}
}
