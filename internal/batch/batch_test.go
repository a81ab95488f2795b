package batch

import (
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// weight returns the weight of a call: its own number.
func weight(n int) int { return n }

// plenty is more than any test puts in or takes out.
var plenty = Limit{Calls: 1000, Bytes: 1000}

// strangers counts the callers that have put a call.
var strangers atomic.Uint64

// somebody returns another caller each time, so that no caller fills its share.
func somebody() (who Owner) {
	binary.BigEndian.PutUint64(who[:], strangers.Add(1))
	return who
}

func filled(t *testing.T, limit Limit, calls ...int) *Queue[int] {
	t.Helper()
	q := New(limit, weight)
	for _, c := range calls {
		if err := q.Put(somebody(), c); err != nil {
			t.Fatalf("put %d: %v", c, err)
		}
	}
	return q
}

func TestPutRefusesWhatDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		name    string
		limit   Limit
		waiting []int
		put     int
		want    error
	}{
		{"the last call", Limit{3, 100}, []int{1, 1}, 1, nil},
		{"one call too many", Limit{3, 100}, []int{1, 1, 1}, 1, ErrFull},
		{"the last byte", Limit{10, 100}, []int{60}, 40, nil},
		{"one byte too many", Limit{10, 100}, []int{60}, 41, ErrFull},
		{"a call larger than the limit, alone", Limit{10, 100}, nil, 101, nil},
		{"a call larger than the limit, behind another", Limit{10, 100}, []int{1}, 101, ErrFull},
		{"a call behind one larger than the limit", Limit{10, 100}, []int{101}, 1, ErrFull},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := filled(t, c.limit, c.waiting...)
			if err := q.Put(somebody(), c.put); !errors.Is(err, c.want) {
				t.Fatalf("put: %v, want %v", err, c.want)
			}
			want := c.waiting
			if c.want == nil {
				want = append(slices.Clone(want), c.put)
			}
			if diff := cmp.Diff(want, q.Close()); diff != "" {
				t.Errorf("what waits differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTakeReturnsTheOldestThatFit(t *testing.T) {
	for _, c := range []struct {
		name       string
		waiting    []int
		limit      Limit
		want, rest []int
	}{
		{"all", []int{3, 1, 2}, Limit{3, 6}, []int{3, 1, 2}, nil},
		{"one call too many", []int{3, 1, 2}, Limit{2, 6}, []int{3, 1}, []int{2}},
		{"one byte too many", []int{3, 1, 2}, Limit{3, 5}, []int{3, 1}, []int{2}},
		{"a small one does not pass a large one", []int{3, 9, 1}, Limit{3, 5}, []int{3}, []int{9, 1}},
		{"one that is larger than the limit", []int{9, 1}, Limit{3, 5}, []int{9}, []int{1}},
		{"nothing waits", nil, Limit{3, 5}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := filled(t, plenty, c.waiting...)
			if got := q.Take(c.limit); !slices.Equal(got, c.want) {
				t.Errorf("taken %v, want %v", got, c.want)
			}
			if got := q.Close(); !slices.Equal(got, c.rest) {
				t.Errorf("%v still waits, want %v", got, c.rest)
			}
		})
	}
}

func TestTakeMakesRoom(t *testing.T) {
	q := filled(t, Limit{2, 10}, 4, 6)
	if err := q.Put(somebody(), 1); !errors.Is(err, ErrFull) {
		t.Fatalf("put into a full queue: %v, want %v", err, ErrFull)
	}
	q.Take(Limit{1, 10})
	if err := q.Put(somebody(), 5); !errors.Is(err, ErrFull) {
		t.Errorf("4 of 10 bytes are free again, and 5 were put: %v, want %v", err, ErrFull)
	}
	if err := q.Put(somebody(), 4); err != nil {
		t.Errorf("4 of 10 bytes are free again, and 4 were refused: %v", err)
	}
}

func TestTakenBatchStaysAsItWas(t *testing.T) {
	q := filled(t, plenty, 1, 2, 3)
	batch := append(q.Take(Limit{2, 1000}), 99) // what a taker may do to its batch
	for _, c := range []int{7, 8, 9} {
		if err := q.Put(somebody(), c); err != nil {
			t.Fatalf("put %d: %v", c, err)
		}
	}
	if diff := cmp.Diff([]int{1, 2, 99}, batch); diff != "" {
		t.Errorf("the batch changed under its taker (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{3, 7, 8, 9}, q.Close()); diff != "" {
		t.Errorf("the taker changed what waits (-want +got):\n%s", diff)
	}
}

func TestReadyWhenEnoughWait(t *testing.T) {
	q := New(plenty, weight)
	for waiting := range 4 {
		for enough := range 6 {
			ready := len(q.Ready(enough)) == 1
			if want := waiting >= max(1, enough); ready != want {
				t.Errorf("%d calls wait, %d are enough: ready %v, want %v", waiting, enough, ready, want)
			}
		}
		if err := q.Put(somebody(), 1); err != nil {
			t.Fatal(err)
		}
	}
	q.Take(Limit{2, 1000})
	if len(q.Ready(2)) == 0 {
		t.Error("two calls were left behind without a signal")
	}
}

func TestReadyReceivesWithThePutThatMakesEnough(t *testing.T) {
	q := New(plenty, weight)
	ready := q.Ready(3)
	for n := 1; n <= 4; n++ {
		if err := q.Put(somebody(), 1); err != nil {
			t.Fatal(err)
		}
		if got, want := len(ready) == 1, n >= 3; got != want {
			t.Errorf("%d calls wait, 3 are enough: ready %v, want %v", n, got, want)
		}
	}
}

func TestPutWakesAWaitingTaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(plenty, weight)
		var got []int
		go func() {
			<-q.Ready(1)
			got = q.Take(plenty)
		}()
		synctest.Wait() // the taker waits
		if err := q.Put(somebody(), 5); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]int{5}, got); diff != "" {
			t.Errorf("the taker got (-want +got):\n%s", diff)
		}
	})
}

func TestCloseReturnsWhatWaitsAndRefusesTheRest(t *testing.T) {
	q := filled(t, plenty, 1, 2)
	if diff := cmp.Diff([]int{1, 2}, q.Close()); diff != "" {
		t.Errorf("what waited differs (-want +got):\n%s", diff)
	}
	if err := q.Put(somebody(), 3); !errors.Is(err, ErrClosed) {
		t.Errorf("put after close: %v, want %v", err, ErrClosed)
	}
	if got := q.Take(plenty); len(got) != 0 {
		t.Errorf("taken after close: %v", got)
	}
	if got := q.Close(); len(got) != 0 {
		t.Errorf("a second close returns %v", got)
	}
}

// TestEveryAcceptedCallComesOutOnce has many putters and one taker that closes in the middle: what Put accepted is
// taken or left to Close, once and in each putter's order.
func TestEveryAcceptedCallComesOutOnce(t *testing.T) {
	const putters, calls = 8, 500
	type call struct{ putter, n int }
	q := New(Limit{Calls: 64, Bytes: 4096}, func(call) int { return 100 })
	accepted := make([][]int, putters)
	var all sync.WaitGroup
	for p := range putters {
		all.Go(func() {
			for n := range calls {
				err := q.Put(somebody(), call{p, n})
				for errors.Is(err, ErrFull) {
					runtime.Gosched()
					err = q.Put(somebody(), call{p, n})
				}
				if errors.Is(err, ErrClosed) {
					return
				}
				accepted[p] = append(accepted[p], n)
			}
		})
	}
	out := make([][]int, putters)
	collect := func(batch []call) {
		for _, c := range batch {
			out[c.putter] = append(out[c.putter], c.n)
		}
	}
	for taken := 0; taken < putters*calls/2; {
		<-q.Ready(1)
		batch := q.Take(Limit{Calls: 7, Bytes: 500})
		if len(batch) > 5 {
			t.Errorf("a batch of 500 bytes has %d calls of 100", len(batch))
		}
		taken += len(batch)
		collect(batch)
	}
	collect(q.Close())
	all.Wait()
	for p := range putters {
		if !slices.Equal(out[p], accepted[p]) {
			t.Errorf("of putter %d %d calls were accepted and %d came out, or in another order",
				p, len(accepted[p]), len(out[p]))
		}
	}
}

// TestQueueAgreesWithASlice compares random puts and takes with a plain slice.
func TestQueueAgreesWithASlice(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := Limit{Calls: rapid.IntRange(1, 6).Draw(rt, "calls"), Bytes: rapid.IntRange(1, 40).Draw(rt, "bytes")}
		q := New(limit, weight)
		var line []int
		sum := func(calls []int) (n int) {
			for _, c := range calls {
				n += c
			}
			return n
		}
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				c := rapid.IntRange(0, 30).Draw(rt, "call")
				fits := len(line) < limit.Calls && (len(line) == 0 || sum(line)+c <= limit.Bytes)
				if err := q.Put(somebody(), c); (err == nil) != fits {
					rt.Fatalf("%v wait, limit %v: put %d: %v", line, limit, c, err)
				}
				if fits {
					line = append(line, c)
				}
			},
			"take": func(rt *rapid.T) {
				most := Limit{
					Calls: rapid.IntRange(1, 6).Draw(rt, "calls"),
					Bytes: rapid.IntRange(0, 40).Draw(rt, "bytes"),
				}
				n := min(1, len(line))
				for n < len(line) && n < most.Calls && sum(line[:n+1]) <= most.Bytes {
					n++
				}
				if got := q.Take(most); !slices.Equal(got, line[:n]) {
					rt.Fatalf("%v wait, at most %v: taken %v, want %v", line, most, got, line[:n])
				}
				line = slices.Clone(line[n:])
				if len(line) > 0 && len(q.Ready(1)) == 0 {
					rt.Fatalf("%v are left without a signal", line)
				}
			},
		})
	})
}

// TestNoCallerFillsTheLineAlone puts calls of one owner until they are refused: others get in, and the owner does when
// some were taken.
func TestNoCallerFillsTheLineAlone(t *testing.T) {
	for _, c := range []struct {
		name   string
		limit  Limit
		weight int
	}{{"calls", Limit{Calls: 8, Bytes: 1000}, 1}, {"bytes", Limit{Calls: 1000, Bytes: 80}, 10}} {
		q := New(c.limit, weight)
		fill := func(who Owner) (n int) {
			for q.Put(who, c.weight) == nil {
				n++
			}
			return n
		}
		a, b, unbound := Owner{1}, Owner{2}, Owner{}
		if n := fill(a); n != 4 {
			t.Errorf("%s: one gets %d of 8 places, want half", c.name, n)
		}
		if n := fill(b); n != 2 {
			t.Errorf("%s: the next gets %d of 4 places, want half of the rest", c.name, n)
		}
		if err := q.Put(unbound, c.weight); err != nil {
			t.Errorf("%s: who has nothing waiting is kept out while there is room: %v", c.name, err)
		}
		if n := len(q.Take(plenty)); n != 7 {
			t.Fatalf("%s: %d calls are taken, want 7", c.name, n)
		}
		if n := fill(a); n != 4 {
			t.Errorf("%s: one gets %d of 8 places after all were taken, want half", c.name, n)
		}
		q.Close()
		if len(q.shares) != 0 {
			t.Errorf("%s: %d shares are left of a line that is closed", c.name, len(q.shares))
		}
	}
}
