package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"lessor"
)

const (
	maxKind = 120
	// entryOverhead is what an entry costs besides its bytes, so that the limit of a journal bounds its entries too.
	entryOverhead = 64
)

// JournalSize is how much a journal holds.
type JournalSize struct {
	Entries int
	Bytes   int64
}

// JournalLimits bound journals: the bytes of one entry and those of all entries of a job.
type JournalLimits struct{ Entry, Job int64 }

// Entry is an entry of a job's journal.
type Entry struct {
	Job  lessor.JobID
	Seq  int64       // of the job; only an entry that is to be appended has it
	Size JournalSize // of the journal up to and with this entry; Size.Entries is its number
	lessor.JournalEntry
}

// cost is what an entry counts towards the limit of its journal.
func (e *Entry) cost() int64 { return int64(len(e.Key) + len(e.Kind) + len(e.Data) + entryOverhead) }

// Journaled reports whether entries were appended under this lease.
func (h *Held) Journaled() bool { return h.Journal.Entries > 0 }

// entries returns how many entries the journal of a job has.
func (s *Standing) entries() int {
	switch {
	case s.Held != nil && s.Held.Journaled():
		return s.Held.Journal.Entries
	case s.Report != nil && s.Report.Entries != nil:
		return *s.Report.Entries
	}
	return 0
}

// JournalAppend checks an append. Appending is a heartbeat too.
func JournalAppend(a *lessor.JournalAppend, l JournalLimits) (BeatAsk, error) {
	if a.WorkerID == nil {
		return BeatAsk{}, Missing("worker_id")
	}
	var c check
	ask := BeatAsk{
		Worker: c.text("worker_id", a.WorkerID, 1, maxWorker, ""),
		After:  c.number("after", a.After, 0, math.MaxInt32, 0),
	}
	if n := len(a.Entries); n < 1 || n > lessor.MaxAppend {
		c.fail("entries", "must be 1 to %d, not %d", lessor.MaxAppend, n)
		return ask, c.err()
	}
	for i, e := range a.Entries {
		c.prefix = "entries[" + strconv.Itoa(i) + "]."
		c.require("key", e.Key != nil)
		data := e.Data
		if data == nil {
			data = json.RawMessage("null")
		}
		c.size("data", len(data), int(min(l.Entry, math.MaxInt32)))
		ask.Append = append(ask.Append, Entry{JournalEntry: lessor.JournalEntry{
			Key: c.text("key", e.Key, 1, maxKey, ""), Kind: c.text("kind", e.Kind, 0, maxKind, ""), Data: data,
		}})
	}
	return ask, c.err()
}

// Append decides which entries are added to the journal of a lease, and returns them and the number of each entry that
// was asked for. size is that of the journal; known are entries of it, among them all with a key that is asked for.
func Append(
	h *Held, size JournalSize, known map[string]Entry, ask *BeatAsk, l JournalLimits, now lessor.Instant,
) (added []Entry, numbers []int, err error) {
	if int64(size.Entries) < ask.After {
		return nil, nil, conflict("the journal has %d entries and not %d: the store has lost some;"+
			" read the journal, and append those that are missing first", size.Entries, ask.After)
	}
	numbers = make([]int, len(ask.Append))
	for i, e := range ask.Append {
		was, again := known[e.Key]
		for j := range added {
			if added[j].Key == e.Key {
				was, again = added[j], true
			}
		}
		if !again {
			size.Entries, size.Bytes = size.Entries+1, size.Bytes+e.cost()
			e.Job, e.Seq, e.Size, e.N, e.At, e.Fence = h.Turn.Job, h.Turn.Seq, size, size.Entries, now, h.Turn.Fence
			added, was = append(added, e), e
		}
		if was.Kind != e.Kind || !bytes.Equal(was.Data, e.Data) {
			return nil, nil, conflict("the journal has another entry with the key %q: entry %d", e.Key,
				was.Size.Entries)
		}
		numbers[i] = was.Size.Entries
	}
	if len(added) > 0 && size.Bytes > l.Job {
		return nil, nil, &lessor.Error{
			Code: lessor.CodePayloadTooLarge,
			Detail: fmt.Sprintf(
				"the journal would have %d bytes; the limit is %d: shorten the entries, or finish the job",
				size.Bytes, l.Job),
		}
	}
	return added, numbers, nil
}
