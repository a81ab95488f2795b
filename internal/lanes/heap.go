package lanes

import "slices"

// heap is a four-way min-heap by key, then tie. Slots are 16 bytes and have no pointers: the four children of a slot
// fill one cache line. The item of a slot is a number in a roster, which also knows where each item is.
type heap []slot

type slot struct {
	key int64
	tie int32
	num int32
}

func (s *slot) before(o *slot) bool {
	return s.key < o.key || s.key == o.key && s.tie < o.tie
}

// roster numbers the items of a kind. Each can be in one heap, and pos is its place there.
type roster[T any] struct {
	items []*T // nil = the number is free
	pos   []int32
	free  []int32
}

const absent = -1

// add numbers an item that is in no heap.
func (r *roster[T]) add(item *T) int32 {
	if last := len(r.free) - 1; last >= 0 {
		num := r.free[last]
		r.free, r.items[num] = r.free[:last], item
		return num
	}
	r.items = append(r.items, item)
	r.pos = append(r.pos, absent)
	return int32(len(r.items) - 1)
}

// drop frees the number of an item that is in no heap.
func (r *roster[T]) drop(num int32) { r.items[num], r.free = nil, append(r.free, num) }

// in reports whether an item is in its heap.
func (r *roster[T]) in(num int32) bool { return r.pos[num] != absent }

func (h *heap) push(pos []int32, s slot) {
	*h = append(*h, s)
	h.up(pos, len(*h)-1, s)
}

func (h *heap) remove(pos []int32, num int32) {
	old := *h
	i, last := int(pos[num]), len(old)-1
	pos[num] = absent
	*h = old[:last]
	if i < last {
		h.settle(pos, i, old[last])
	}
}

// rekey gives an item that is in the heap another key.
func (h heap) rekey(pos []int32, num int32, key int64) {
	i := int(pos[num])
	s := h[i]
	s.key = key
	h.settle(pos, i, s)
}

// raise gives the first item a higher key.
func (h heap) raise(pos []int32, key int64) {
	s := h[0]
	s.key = key
	h.down(pos, 0, s)
}

// lower subtracts by from all keys, down to floor at most.
func (h heap) lower(pos []int32, by, floor int64) {
	for i := range h {
		h[i].key = max(h[i].key-by, floor)
	}
	for i, v := range slices.Backward(h) { // keys that met at the floor are now ordered by their ties
		h.down(pos, i, v)
	}
}

// settle puts s where it belongs, given that i is free.
func (h heap) settle(pos []int32, i int, s slot) {
	if i > 0 && s.before(&h[(i-1)/4]) {
		h.up(pos, i, s)
	} else {
		h.down(pos, i, s)
	}
}

func (h heap) up(pos []int32, i int, s slot) {
	for i > 0 {
		parent := (i - 1) / 4
		if !s.before(&h[parent]) {
			break
		}
		h[i] = h[parent]
		pos[h[i].num] = int32(i)
		i = parent
	}
	h[i] = s
	pos[s.num] = int32(i)
}

func (h heap) down(pos []int32, i int, s slot) {
	for {
		first := 4*i + 1
		if first >= len(h) {
			break
		}
		least := first
		for c := first + 1; c < min(first+4, len(h)); c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if !h[least].before(&s) {
			break
		}
		h[i] = h[least]
		pos[h[i].num] = int32(i)
		i = least
	}
	h[i] = s
	pos[s.num] = int32(i)
}
