package rules

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"lessor"
)

func chunk(start int64, data []byte) lessor.OutputChunk {
	return lessor.OutputChunk{Stream: new(lessor.Stdout), Offset: &start, Data: data}
}

func TestOutputReportHasBounds(t *testing.T) {
	worker := new("w")
	many := func(n int) (chunks []lessor.OutputChunk) {
		for i := range n {
			chunks = append(chunks, chunk(int64(i), []byte("x")))
		}
		return chunks
	}
	full := make([]byte, lessor.MaxOutputChunk)
	var largest []lessor.OutputChunk
	for i := range int64(lessor.MaxOutputCall / lessor.MaxOutputChunk) {
		largest = append(largest, chunk(i*lessor.MaxOutputChunk, full))
	}
	at, stderr, log := new(int64(0)), new(lessor.Stderr), new("log")
	for name, c := range map[string]struct {
		worker *string
		chunks []lessor.OutputChunk
		code   lessor.Code
	}{
		"one":           {worker, many(1), ""},
		"none":          {worker, []lessor.OutputChunk{}, ""},
		"most":          {worker, many(maxOutputChunks), ""},
		"largest":       {worker, largest, ""},
		"no worker":     {nil, many(1), lessor.CodeInvalidRequest},
		"no chunks":     {worker, nil, lessor.CodeInvalidRequest},
		"no stream":     {worker, []lessor.OutputChunk{{Offset: at, Data: full}}, lessor.CodeInvalidRequest},
		"no offset":     {worker, []lessor.OutputChunk{{Stream: stderr, Data: full}}, lessor.CodeInvalidRequest},
		"below 0":       {worker, []lessor.OutputChunk{chunk(-1, full)}, lessor.CodeInvalidValue},
		"another":       {worker, []lessor.OutputChunk{{Stream: log, Offset: at, Data: full}}, lessor.CodeInvalidValue},
		"without bytes": {worker, []lessor.OutputChunk{chunk(0, nil)}, lessor.CodeInvalidValue},
		"too large":     {worker, []lessor.OutputChunk{chunk(0, make([]byte, len(full)+1))}, lessor.CodeInvalidValue},
		"too many":      {worker, many(maxOutputChunks + 1), lessor.CodeInvalidValue},
		"too much":      {worker, append(largest, chunk(0, []byte("x"))), lessor.CodeInvalidValue},
	} {
		ask, err := OutputReport(&lessor.OutputReport{WorkerID: c.worker, Chunks: c.chunks})
		if got := lessor.CodeOf(err); got != c.code {
			t.Errorf("%s: %v, want code %q", name, err, c.code)
		}
		if err == nil && (!ask.OutputOnly || len(ask.Output) != len(c.chunks)) {
			t.Errorf("%s: %d chunks became %d", name, len(c.chunks), len(ask.Output))
		}
	}
	beat := lessor.Heartbeat{WorkerID: worker, Output: []lessor.OutputChunk{chunk(0, full[:lessor.MaxOutputBeat])}}
	if _, err := Heartbeat(&beat); err != nil {
		t.Errorf("a heartbeat with little output: %v", err)
	}
	beat.Output[0].Data = full[:lessor.MaxOutputBeat+1]
	if _, err := Heartbeat(&beat); lessor.CodeOf(err) != lessor.CodeInvalidValue {
		t.Errorf("a heartbeat with much output: %v", err)
	}
}

// TestHeadAndTailOfOutputStay sends random output in random chunks, again and with gaps, to a store that does what the
// seam says, and reads it back.
func TestHeadAndTailOfOutputStay(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		keep := OutputKeep{Head: r.Int64N(50), Tail: 1 + r.Int64N(200)}
		text := make([]byte, r.IntN(2000))
		for i := range text {
			text[i] = byte(r.Uint32())
		}
		var stored []OutputPiece
		h := &Held{}
		for sent := 0; sent < len(text); {
			end := min(len(text), sent+1+r.IntN(40))
			pieces, gone := KeepOutput(h, []lessor.OutputChunk{chunk(int64(sent), text[sent:end])}, keep)
			stored = append(stored, pieces...)
			for _, m := range gone {
				stored = slices.DeleteFunc(stored,
					func(p OutputPiece) bool { return p.Start >= m.From && p.End() <= m.To })
			}
			sent = end
		}
		slices.SortFunc(stored, func(a, b OutputPiece) int { return int(a.Start - b.Start) })
		size := int64(len(text))
		kept, bytesKept := make([]byte, size), int64(0)
		for at := int64(0); ; {
			start, data := Concat(stored, at, 30)
			if len(data) == 0 {
				break
			}
			if !bytes.Equal(data, text[start:start+int64(len(data))]) {
				t.Fatalf("seed %d: %d bytes from %d are not what was printed", seed, len(data), start)
			}
			for i := range data {
				kept[start+int64(i)] = 1
			}
			at = start + int64(len(data))
			bytesKept += int64(len(data))
		}
		for i := range size {
			if must := i < keep.Head || i >= size-keep.Tail; must && kept[i] == 0 {
				t.Fatalf("seed %d: byte %d of %d is gone, with head %d and tail %d", seed, i, size, keep.Head,
					keep.Tail)
			}
		}
		if most := keep.Head + keep.Tail + 40; bytesKept > most {
			t.Fatalf("seed %d: %d bytes are kept, want at most %d", seed, bytesKept, most)
		}
	}
	one := []lessor.OutputChunk{chunk(0, []byte("x"))}
	if pieces, gone := KeepOutput(&Held{}, one, OutputKeep{Head: 5}); pieces != nil || gone != nil {
		t.Error("output is kept although it is switched off")
	}
}

func TestOverlapOfOutputIsReadOnce(t *testing.T) {
	text := []byte("0123456789")
	pieces := []OutputPiece{
		{Start: 0, Data: text[:4]},
		{Start: 2, Data: text[2:3]},
		{Start: 3, Data: text[3:8]},
		{Start: 9, Data: text[9:]},
	}
	for _, c := range []struct {
		offset int64
		limit  int
		start  int64
		want   string
	}{
		{0, 100, 0, "01234567"},
		{1, 3, 1, "123"},
		{5, 100, 5, "567"},
		{8, 100, 9, "9"},
		{10, 100, 10, ""},
		{99, 1, 99, ""},
	} {
		if start, data := Concat(pieces, c.offset, c.limit); start != c.start || string(data) != c.want {
			t.Errorf("%d bytes from %d: %q from %d, want %q from %d", c.limit, c.offset, data, start, c.want, c.start)
		}
	}
}

func TestOutputOfAnAttemptIsThatOfItsLastLease(t *testing.T) {
	turn := func(attempt int, fence int64) Turn { return Turn{Attempt: attempt, Fence: fence} }
	h := &History{Attempts: []Attempt{{Turn: turn(1, 10)}, {Turn: turn(2, 20)}, {Turn: turn(2, 30)}}}
	queued := *h
	queued.Standing.Turn = turn(1, 30) // the attempt was given back
	live, done := *h, *h
	live.Standing.Held = &Held{Turn: turn(3, 40)}
	done.Standing.Done = &Done{Attempt: Attempt{Turn: turn(3, 40), Lease: lessor.LeaseID{UUID: lessor.UUID{1}}}}
	unheld := *h
	unheld.Standing.Done = &Done{Attempt: Attempt{Turn: turn(3, 30)}}
	for name, c := range map[string]struct {
		h              *History
		attempt, fence int64
		want           lessor.OutputLease
		code           lessor.Code
	}{
		"never granted":          {h: &History{}},
		"last, queued":           {h: &queued, want: lessor.OutputLease{Attempt: 2, Fence: 30}},
		"first":                  {h: &live, attempt: 1, want: lessor.OutputLease{Attempt: 1, Fence: 10}},
		"given back once":        {h: &live, attempt: 2, want: lessor.OutputLease{Attempt: 2, Fence: 30}},
		"before it was":          {h: &live, fence: 20, want: lessor.OutputLease{Attempt: 2, Fence: 20}},
		"by both":                {h: &live, attempt: 2, fence: 20, want: lessor.OutputLease{Attempt: 2, Fence: 20}},
		"of another attempt":     {h: &live, attempt: 1, fence: 20, code: lessor.CodeLeaseNotFound},
		"unknown fence":          {h: &live, fence: 25, code: lessor.CodeLeaseNotFound},
		"last, live":             {h: &live, want: lessor.OutputLease{Attempt: 3, Fence: 40, Live: true}},
		"live, by its fence":     {h: &live, fence: 40, want: lessor.OutputLease{Attempt: 3, Fence: 40, Live: true}},
		"last, done":             {h: &done, attempt: 3, want: lessor.OutputLease{Attempt: 3, Fence: 40}},
		"cancelled in the queue": {h: &unheld, want: lessor.OutputLease{Attempt: 2, Fence: 30}},
		"not yet":                {h: &live, attempt: 4},
	} {
		got, err := LeaseOf(c.h, lessor.OutputQuery{Attempt: c.attempt, Fence: c.fence})
		if got != c.want || lessor.CodeOf(err) != c.code {
			t.Errorf("%s: %+v and %v, want %+v and code %q", name, got, err, c.want, c.code)
		}
	}
	want := []lessor.OutputLease{{Attempt: 1, Fence: 10}, {Attempt: 2, Fence: 30}, {Attempt: 3, Fence: 40, Live: true}}
	if got := OutputLeases(&live, []int64{40, 30, 10}); !slices.Equal(got, want) {
		t.Errorf("the leases with output are %+v, want %+v", got, want)
	}
}

func TestOutputOfOldLeasesIsRemoved(t *testing.T) {
	var fences []int64
	for n := range int64(MaxOutputLeases + 2) {
		fences = append(fences, 1000-n)
	}
	if gone := OldOutput(lessor.JobID{}, fences[:MaxOutputLeases]); gone != nil {
		t.Errorf("of as many leases as are kept goes %v", gone)
	}
	var got []int64
	for _, m := range OldOutput(lessor.JobID{}, fences) {
		got = append(got, m.Fence)
	}
	if last := fences[MaxOutputLeases:]; !slices.Equal(got, []int64{last[0], last[0], last[1], last[1]}) {
		t.Errorf("the output of %v goes, want both streams of %v", got, last)
	}
}

// TestRowsOfOutputAreFew adds what one stream prints byte by byte, in order, again, and overlapping: the pieces are in
// order, do not overlap, and are few, whatever the calls looked like.
func TestRowsOfOutputAreFew(t *testing.T) {
	text := make([]byte, 3000)
	keep := OutputKeep{Head: 50, Tail: 1 << 16}
	for name, start := range map[string]func(i int) int{
		"in order":     func(i int) int { return i },
		"overlapping":  func(i int) int { return max(0, i-3) },
		"from nothing": func(int) int { return 0 },
		"from the head": func(i int) int {
			return min(i, int(keep.Head))
		},
	} {
		var o Outputs
		for i := range text {
			pieces, _ := KeepOutput(&Held{}, []lessor.OutputChunk{chunk(int64(start(i)), text[start(i):i+1])}, keep)
			for _, p := range pieces {
				o.Add(p)
			}
		}
		end := int64(0)
		for _, p := range o.Pieces {
			if p.Start != end {
				t.Fatalf("%s: a piece starts at %d, and the one before ends at %d", name, p.Start, end)
			}
			end = p.End()
		}
		if len(o.Pieces) != 2 || o.Pieces[1].Start != keep.Head || end != int64(len(text)) {
			t.Errorf("%s: %d pieces up to %d, want the head and one more up to %d", name, len(o.Pieces), end, len(text))
		}
	}
}
