package rules

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"lessor"
)

func TestJournalAppendChecks(t *testing.T) {
	ask := func(key, kind, data string) lessor.JournalAsk {
		return lessor.JournalAsk{Key: &key, Kind: &kind, Data: json.RawMessage(data)}
	}
	many := func(n int) (asks []lessor.JournalAsk) {
		for range n {
			asks = append(asks, ask("k", "", "1"))
		}
		return asks
	}
	limits := JournalLimits{Entry: 10, Job: 100}
	for name, c := range map[string]struct {
		entries []lessor.JournalAsk
		code    lessor.Code
	}{
		"one":               {many(1), ""},
		"as many as may be": {many(lessor.MaxAppend), ""},
		"too many":          {many(lessor.MaxAppend + 1), lessor.CodeInvalidValue},
		"none":              {nil, lessor.CodeInvalidValue},
		"no key":            {[]lessor.JournalAsk{{Data: json.RawMessage("1")}}, lessor.CodeInvalidRequest},
		"empty key":         {[]lessor.JournalAsk{ask("", "", "1")}, lessor.CodeInvalidValue},
		"longest key":       {[]lessor.JournalAsk{ask(strings.Repeat("k", maxKey), "", "1")}, ""},
		"key too long": {
			[]lessor.JournalAsk{ask(strings.Repeat("k", maxKey+1), "", "1")}, lessor.CodeInvalidValue,
		},
		"longest kind": {[]lessor.JournalAsk{ask("k", strings.Repeat("k", maxKind), "1")}, ""},
		"kind too long": {
			[]lessor.JournalAsk{ask("k", strings.Repeat("k", maxKind+1), "1")}, lessor.CodeInvalidValue,
		},
		"largest data":   {[]lessor.JournalAsk{ask("k", "", `"12345678"`)}, ""},
		"data too large": {[]lessor.JournalAsk{ask("k", "", `"123456789"`)}, lessor.CodePayloadTooLarge},
	} {
		got, err := JournalAppend(&lessor.JournalAppend{WorkerID: new("w1"), Entries: c.entries}, limits)
		if lessor.CodeOf(err) != c.code || c.code == "" && len(got.Append) != len(c.entries) {
			t.Errorf("%s: %d entries, %v; want %d, code %q", name, len(got.Append), err, len(c.entries), c.code)
		}
	}
	_, err := JournalAppend(&lessor.JournalAppend{Entries: many(1)}, limits)
	refused(t, err, lessor.CodeInvalidRequest)
	without, err := JournalAppend(&lessor.JournalAppend{
		WorkerID: new("w1"), Entries: []lessor.JournalAsk{{Key: new("k")}},
	}, limits)
	if err != nil || string(without.Append[0].Data) != "null" {
		t.Errorf("an entry without data is %v, %v; want null", without, err)
	}
}

func TestAppend(t *testing.T) {
	entry := func(key, data string) Entry {
		return Entry{JournalEntry: lessor.JournalEntry{Key: key, Kind: "step", Data: json.RawMessage(data)}}
	}
	known := map[string]Entry{"old": entry("old", "1")}
	old := known["old"]
	old.Size.Entries = 2
	known["old"] = old
	size := JournalSize{Entries: 3, Bytes: 300}
	cost := int64(len("newstep1") + entryOverhead)
	other := entry("old", "1")
	other.Kind = "another"
	for name, c := range map[string]struct {
		ask     []Entry
		numbers []int
		added   int
		limit   int64
		code    lessor.Code
	}{
		"a new entry":           {[]Entry{entry("new", "1")}, []int{4}, 1, 1000, ""},
		"a known one":           {[]Entry{entry("old", "1")}, []int{2}, 0, 1000, ""},
		"a known one when full": {[]Entry{entry("old", "1")}, []int{2}, 0, 1, ""},
		"both": {
			[]Entry{entry("new", "1"), entry("old", "1"), entry("x", "1")},
			[]int{4, 2, 5},
			2, 1000, "",
		},
		"one twice":              {[]Entry{entry("new", "1"), entry("new", "1")}, []int{4, 4}, 1, 1000, ""},
		"twice, not the same":    {[]Entry{entry("new", "1"), entry("new", "2")}, nil, 0, 1000, lessor.CodeConflict},
		"known, with other data": {[]Entry{entry("old", "2")}, nil, 0, 1000, lessor.CodeConflict},
		"known, of another kind": {[]Entry{other}, nil, 0, 1000, lessor.CodeConflict},
		"fills the journal":      {[]Entry{entry("new", "1")}, []int{4}, 1, 300 + cost, ""},
		"does not fit":           {[]Entry{entry("new", "1")}, nil, 0, 300 + cost - 1, lessor.CodePayloadTooLarge},
	} {
		h := lease()
		ask := BeatAsk{Append: c.ask, After: 3}
		added, numbers, err := Append(h, size, known, &ask, JournalLimits{Job: c.limit}, after(time.Second))
		if lessor.CodeOf(err) != c.code || len(added) != c.added {
			t.Errorf("%s: added %v, %v; want %d, code %q", name, added, err, c.added, c.code)
			continue
		}
		same(t, name, numbers, c.numbers)
		for _, e := range added {
			if e.Job != h.Turn.Job || e.At != after(time.Second) || e.Fence != h.Turn.Fence || e.N != e.Size.Entries {
				t.Errorf("%s: entry %+v does not say when and under which lease it was appended", name, e)
			}
		}
	}
}

// TestAppendAfterALossIsRefused: the worker knows an entry that the journal does not have any more.
func TestAppendAfterALossIsRefused(t *testing.T) {
	ask := BeatAsk{After: 4, Append: []Entry{{JournalEntry: lessor.JournalEntry{Key: "fifth"}}}}
	added, _, err := Append(lease(), JournalSize{Entries: 3}, nil, &ask, JournalLimits{Job: 1000}, after(time.Second))
	if lessor.CodeOf(err) != lessor.CodeConflict || len(added) > 0 {
		t.Errorf("added %v, %v; want the code %s", added, err, lessor.CodeConflict)
	}
}

// TestAttemptsCountFromTheLastProgress: one that expired after an append is continued. Every other end counts.
func TestAttemptsCountFromTheLastProgress(t *testing.T) {
	journaled := func(h *Held) { h.Journal.Entries, h.Turn.Attempt, h.Turn.Interruptions = 3, h.Turn.MaxAttempts, 7 }
	next, err := Conclude(lease(journaled), Lapse(OutcomeExpired), usual, after(time.Minute), 0)
	if err != nil || next.Place != Delayed || next.Turn.Attempt != 1 || next.Turn.Interruptions != 0 {
		t.Errorf("the last attempt expired after it appended: %+v, %v; want that it was the first", next, err)
	}
	for _, name := range []string{"failed", "revoked", "out of time"} {
		next, err := Conclude(lease(journaled), ends[name], usual, after(time.Minute), 0)
		if err != nil || next.Place != Ended {
			t.Errorf("%s: %+v, %v; want the end of the job", name, next, err)
		}
	}
	last := lease(func(h *Held) { h.Turn.Attempt = 5 })
	next, err = Conclude(last, Lapse(OutcomeExpired), usual, after(time.Minute), 0)
	if err != nil || next.Place != Ended {
		t.Errorf("the last attempt expired without an entry: %+v, %v; want the end of the job", next, err)
	}
}

// TestJournalIsProgress: a release after an append is the first since the last progress.
func TestJournalIsProgress(t *testing.T) {
	h := lease(func(h *Held) { h.Journal.Entries, h.Turn.Interruptions = 1, 20 })
	e := ends["released"]
	Released(h, &e, Report{}, Report{})
	next, err := Conclude(h, e, usual, after(time.Minute), 0)
	if err != nil || next.Place != InQueue || next.Turn.Interruptions != 1 || next.Turn.Attempt != 0 {
		t.Errorf("released after an append: %+v, %v; want 1 interruption and no attempt", next, err)
	}
	s := &Standing{Spec: full, Place: Leased, Turn: h.Turn, Held: h, Report: &Report{Entries: new(7)}}
	if job := Show(s); job.Interruptions != 0 || job.JournalEntries != 1 {
		t.Errorf("a job that has appended shows %d interruptions and %d entries, want 0 and 1", job.Interruptions,
			job.JournalEntries)
	}
	h.Journal = JournalSize{}
	if job := Show(s); job.JournalEntries != 7 {
		t.Errorf("a job that has not appended yet shows %d entries, want the 7 of its report", job.JournalEntries)
	}
}
