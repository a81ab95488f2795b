package lanes

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLineAgreesWithSortedSlice runs every operation on a line that grows to many chunks and shrinks to none.
func TestLineAgreesWithSortedSlice(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 2))
		l := &line{}
		var want []int64
		var next int64
		for step := range 12_000 {
			grow := step/3000%2 == 0
			switch at := r.IntN(10); {
			case at < 3 && grow || len(want) == 0 || at == 0: // comes last
				next += 1 + int64(r.IntN(3))
				l.insert(&entry{seq: next})
				want = append(want, next)
			case at < 6 && grow: // comes late, or is there already
				seq := r.Int64N(next) + 1
				i, there := slices.BinarySearch(want, seq)
				if l.insert(&entry{seq: seq, fence: int64(step)}) == there {
					t.Fatalf("seed %d, step %d: insert of %d reported %v", seed, step, seq, !there)
				}
				if !there {
					want = slices.Insert(want, i, seq)
				}
			case at < 8:
				l.remove(l.head, l.chunks[l.head].off)
				want = want[1:]
			default:
				at := r.IntN(len(want))
				i, j, found := l.find(want[at])
				if !found || l.chunks[i].es[j].seq != want[at] {
					t.Fatalf("seed %d, step %d: %d was not found", seed, step, want[at])
				}
				l.remove(i, j)
				want = slices.Delete(want, at, at+1)
			}
			checkLine(t, l, want, r.IntN(max(1, len(want))))
		}
	}
}

func checkLine(t *testing.T, l *line, want []int64, i int) {
	t.Helper()
	if l.n != len(want) {
		t.Fatalf("line has %d, want %d", l.n, len(want))
	}
	if l.n == 0 {
		return
	}
	if l.first().seq != want[0] {
		t.Fatalf("first is %d, want %d", l.first().seq, want[0])
	}
	if place, ok := l.place(want[i]); !ok || place != i+1 {
		t.Fatalf("place of %d is %d (%v), want %d", want[i], place, ok, i+1)
	}
	for _, r := range l.chunks[l.head:] {
		if len(r.live()) == 0 || cap(r.es) > chunkMax+chunkMax/2 {
			t.Fatalf("a chunk has %d entries, room for %d", len(r.live()), cap(r.es))
		}
	}
}

func TestLineKeepsLittleAfterCancels(t *testing.T) {
	l := &line{}
	for seq := range int64(10_000) {
		l.insert(&entry{seq: seq})
	}
	for seq := range int64(10_000) {
		if seq%100 != 0 {
			i, j, _ := l.find(seq)
			l.remove(i, j)
		}
	}
	total := 0
	for _, r := range l.chunks {
		total += cap(r.es)
	}
	if l.n != 100 || total > 2000 {
		t.Errorf("%d jobs are left in room for %d", l.n, total)
	}
}
