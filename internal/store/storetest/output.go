package storetest

import (
	"bytes"
	"math"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// printed is a piece of output whose bytes say where they stand.
func printed(at rules.OutputPlace, start, end int64) rules.OutputPiece {
	p := rules.OutputPiece{OutputPlace: at, Start: start}
	for i := start; i < end; i++ {
		p.Data = append(p.Data, byte(i%251))
	}
	return p
}

func (b *bed) print(pieces ...rules.OutputPiece) {
	b.Helper()
	b.update(func(tx scheduler.Tx) error { return tx.SaveOutput(b.Context(), pieces) })
}

func (b *bed) output(at rules.OutputPlace, offset int64, limit int) (pieces []rules.OutputPiece, end int64) {
	b.Helper()
	b.view(func(v scheduler.View) (err error) {
		pieces, end, err = v.Output(b.Context(), at, offset, limit)
		return err
	})
	return pieces, end
}

// wantOutput fails the test unless a stream has these pieces, given as starts and ends.
func (b *bed) wantOutput(what string, at rules.OutputPlace, bounds ...int64) {
	b.Helper()
	var want []rules.OutputPiece
	for i := 0; i < len(bounds); i += 2 {
		want = append(want, printed(at, bounds[i], bounds[i+1]))
	}
	got, end := b.output(at, 0, 1<<20)
	b.same(what, got, want)
	if last := append([]int64{0}, bounds...); end != last[len(last)-1] {
		b.Fatalf("%s: the stream ends at %d, want %d", what, end, last[len(last)-1])
	}
}

func outputComesBack(b *bed) {
	s := b.queued()
	at := rules.OutputPlace{Job: s.ID, Fence: 7, Stream: lessor.Stdout}
	b.wantOutput("before any", at)
	b.print(printed(at, 0, 10), printed(at, 10, 30))
	b.print(printed(at, 100, 120))
	b.wantOutput("with a gap", at, 0, 10, 10, 30, 100, 120)
	b.print(printed(at, 0, 10), printed(at, 10, 30))
	b.print(printed(at, 100, 120))
	b.print(printed(at, 100, 110))
	b.wantOutput("sent again", at, 0, 10, 10, 30, 100, 120)
	b.print(printed(at, 100, 140), printed(at, 140, 150))
	b.wantOutput("sent again with more", at, 0, 10, 10, 30, 100, 120, 120, 140, 140, 150)
	b.print(printed(at, 50, 60))
	b.wantOutput("late", at, 0, 10, 10, 30, 100, 120, 120, 140, 140, 150)
	for _, other := range []rules.OutputPlace{
		{Job: s.ID, Fence: 8, Stream: lessor.Stdout},
		{Job: s.ID, Fence: 7, Stream: lessor.Stderr},
		{Job: b.queued().ID, Fence: 7, Stream: lessor.Stdout},
	} {
		b.wantOutput("of another attempt, stream or job", other)
		b.print(printed(other, 0, 5))
		b.wantOutput("of another attempt, stream or job", other, 0, 5)
	}
	b.wantOutput("beside others", at, 0, 10, 10, 30, 100, 120, 120, 140, 140, 150)
	b.reopen()
	b.wantOutput("after a restart", at, 0, 10, 10, 30, 100, 120, 120, 140, 140, 150)
	for _, c := range []struct {
		offset int64
		limit  int
		first  int64
		count  int
	}{
		{0, 0, 0, 1},
		{0, 1, 0, 2},
		{9, 20, 0, 2},
		{10, 20, 10, 2},
		{29, 60, 10, 4},
		{50, 1, 10, 2},
		{120, 1, 120, 2},
		{149, 9, 140, 1},
		{150, 9, 140, 1},
		{900, 9, 140, 1},
	} {
		got, end := b.output(at, c.offset, c.limit)
		if len(got) != c.count || got[0].Start != c.first || end != 150 {
			b.Fatalf("%d bytes from %d: %d pieces from %v up to %d, want %d from %d up to 150",
				c.limit, c.offset, len(got), got, end, c.count, c.first)
		}
	}
}

// joined is a piece of output that is joined up to a size.
func joined(at rules.OutputPlace, start, end, most int64) rules.OutputPiece {
	p := printed(at, start, end)
	p.Join = most
	return p
}

// outputHasFewRows sends streams that would need a row per byte if each piece became one: with gaps, with overlaps, and
// from the end of the head on again and again.
func outputHasFewRows(b *bed) {
	const most, split = 16, 20
	for name, pieceAt := range map[string]func(n int64) (start, end int64){
		"gaps":     func(n int64) (int64, int64) { return 2 * n, 2*n + 1 },
		"overlaps": func(n int64) (int64, int64) { return n, n + 2 },
		"repeated": func(n int64) (int64, int64) { return min(split, n), split + n },
	} {
		for _, calls := range []int64{1, 3} { // that many pieces in each commit
			at := rules.OutputPlace{Job: b.queued().ID, Fence: 7, Stream: lessor.Stdout}
			last := int64(0)
			for n := int64(1); n <= 60; n += calls {
				var o rules.Outputs
				for i := n; i < n+calls; i++ {
					start, end := pieceAt(i)
					p := joined(at, start, end, most)
					p.Split, last = split, end
					o.Add(p)
				}
				b.print(o.Pieces...)
			}
			got, end := b.output(at, 0, 1<<20)
			if len(got) > 30 || end != last {
				b.Fatalf("%s, %d in a commit: %d rows up to %d, want at most 30 up to %d",
					name, calls, len(got), end, last)
			}
			for _, p := range got {
				b.same(name, p, printed(at, p.Start, p.End()))
			}
		}
	}
	at := rules.OutputPlace{Job: b.queued().ID, Fence: 7, Stream: lessor.Stdout}
	for _, p := range [][2]int64{{0, 3}, {10, 30}, {30, 31}, {40, 41}, {50, 70}, {80, 81}, {90, 91}} {
		b.print(joined(at, p[0], p[1], most))
	}
	b.wantOutput("only what is short and has two gaps goes", at, 0, 3, 10, 30, 30, 31, 40, 41, 50, 70, 90, 91)
}

// outputIsJoined sends a stream in small pieces: they become few rows, and what comes again changes nothing.
func outputIsJoined(b *bed) {
	at := rules.OutputPlace{Job: b.queued().ID, Fence: 7, Stream: lessor.Stdout}
	other := rules.OutputPlace{Job: at.Job, Fence: 7, Stream: lessor.Stderr}
	for n := range int64(10) {
		b.print(joined(at, n, n+1, 4), joined(other, 2*n, 2*n+2, 4))
	}
	b.wantOutput("small pieces", at, 0, 4, 4, 8, 8, 10)
	b.wantOutput("of another stream", other, 0, 4, 4, 8, 8, 12, 12, 16, 16, 20)
	for _, again := range [][2]int64{{9, 10}, {8, 10}, {4, 8}, {2, 3}, {8, 9}} {
		b.print(joined(at, again[0], again[1], 4))
	}
	b.wantOutput("sent again", at, 0, 4, 4, 8, 8, 10)
	b.print(joined(at, 9, 11, 4))
	b.wantOutput("sent again with more", at, 0, 4, 4, 8, 8, 11)
	b.print(joined(at, 11, 12, 0))
	b.wantOutput("not to be joined", at, 0, 4, 4, 8, 8, 11, 11, 12)
	b.print(joined(at, 20, 21, 4), joined(at, 21, 22, 4))
	b.print(joined(at, 22, 23, 4))
	if got, end := b.output(at, 20, 100); end != 23 || len(got) > 2 {
		b.Fatalf("behind a gap are %d pieces up to %d, want at most 2 up to 23", len(got), end)
	}
	b.reopen()
	if got, end := b.output(at, 0, 100); end != 23 || len(got) > 7 {
		b.Fatalf("after a restart there are %d pieces up to %d", len(got), end)
	}
}

func outputMiddleIsDropped(b *bed) {
	s := b.queued()
	at := rules.OutputPlace{Job: s.ID, Fence: 7, Stream: lessor.Stdout}
	other := rules.OutputPlace{Job: s.ID, Fence: 7, Stream: lessor.Stderr}
	for start := int64(0); start < 100; start += 10 {
		b.print(printed(at, start, start+10), printed(other, start, start+10))
	}
	drop := func(from, to int64) {
		b.update(func(tx scheduler.Tx) error {
			return tx.DropOutput(b.Context(), []rules.OutputMiddle{{OutputPlace: at, From: from, To: to}})
		})
	}
	drop(20, 79)
	b.wantOutput("without what lies inside", at, 0, 10, 10, 20, 70, 80, 80, 90, 90, 100)
	drop(20, 80)
	drop(20, 80)
	b.wantOutput("without what lies inside", at, 0, 10, 10, 20, 80, 90, 90, 100)
	if got, _ := b.output(other, 0, 1<<20); len(got) != 10 {
		b.Fatalf("another stream has %d pieces left of 10", len(got))
	}
	b.update(func(tx scheduler.Tx) error {
		if err := tx.SaveOutput(b.Context(), nil); err != nil {
			return err
		}
		return tx.DropOutput(b.Context(), nil)
	})
}

// outputFences prints under several leases of two jobs, in no order, and removes what one of them printed.
func outputFences(b *bed) {
	job, other := b.queued().ID, b.queued().ID
	want := func(what string, of lessor.JobID, limit int, want ...int64) {
		b.Helper()
		b.view(func(v scheduler.View) error {
			got, err := v.OutputFences(b.Context(), of, limit)
			if err == nil && !slices.Equal(got, want) {
				b.Fatalf("%s: output has the fences %v, want %v", what, got, want)
			}
			return err
		})
	}
	want("before any", job, 10)
	for _, p := range []rules.OutputPlace{
		{Job: job, Fence: 9, Stream: lessor.Stdout},
		{Job: job, Fence: 7, Stream: lessor.Stderr},
		{Job: job, Fence: 7, Stream: lessor.Stdout},
		{Job: job, Fence: 1 << 60, Stream: lessor.Stderr},
		{Job: other, Fence: 8, Stream: lessor.Stdout},
	} {
		b.print(printed(p, 0, 10), printed(p, 20, 30))
	}
	want("all", job, 10, 1<<60, 9, 7)
	want("two", job, 2, 1<<60, 9)
	want("of another job", other, 10, 8)
	b.update(func(tx scheduler.Tx) error {
		at := rules.OutputPlace{Job: job, Fence: 9, Stream: lessor.Stdout}
		err := tx.DropOutput(b.Context(), []rules.OutputMiddle{{OutputPlace: at, From: 0, To: math.MaxInt64}})
		if err != nil {
			return err
		}
		got, err := tx.OutputFences(b.Context(), job, 10)
		if err == nil && !slices.Equal(got, []int64{1 << 60, 7}) {
			b.Fatalf("in the transaction that drops one, output has the fences %v", got)
		}
		return err
	})
	b.reopen()
	want("after a restart", job, 10, 1<<60, 7)
}

// outputRemovedWithItsJob also prints bytes of every value.
func outputRemovedWithItsJob(b *bed) {
	strip := func(tx scheduler.Tx, before lessor.Instant) (int, error) { return tx.Strip(b.Context(), before, 10) }
	purge := func(tx scheduler.Tx, before lessor.Instant) (int, error) { return tx.Purge(b.Context(), before, 10) }
	for i, remove := range []func(scheduler.Tx, lessor.Instant) (int, error){strip, purge} {
		base := lessor.Instant(i) * 1000
		old, young := b.endedAt(base+100, ""), b.endedAt(base+200, "")
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		var places []rules.OutputPlace
		for _, job := range []*rules.Spec{old, young} {
			for _, stream := range []string{lessor.Stdout, lessor.Stderr} {
				at := rules.OutputPlace{Job: job.ID, Fence: 3, Stream: stream}
				b.print(rules.OutputPiece{OutputPlace: at, Data: all})
				if got, _ := b.output(at, 0, 1); len(got) != 1 || !bytes.Equal(got[0].Data, all) {
					b.Fatalf("bytes of every value came back as %v", got)
				}
				places = append(places, at)
			}
		}
		b.update(func(tx scheduler.Tx) error {
			_, err := remove(tx, base+150)
			return err
		})
		for _, at := range places {
			if got, _ := b.output(at, 0, 1); len(got) == 0 != (at.Job == old.ID) {
				b.Fatalf("%d pieces of %s are left, of a job that is old: %v", len(got), at.Stream, at.Job == old.ID)
			}
		}
	}
}
