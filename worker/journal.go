package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"lessor"
	"lessor/client"
	"lessor/internal/plainjson"
)

// Journal keeps what the attempts of one job have done, in order, so that the next attempt need not do it again. Only
// the holder of the job's lease can append. Its methods are safe for concurrent use.
type Journal struct {
	// send appends an entry on the server and returns its number, load reads all entries. The journal of a job that a
	// test has made by hand has neither.
	send sendEntry
	load func(ctx context.Context) (map[string]lessor.JournalEntry, error)

	mu      sync.Mutex
	loaded  bool // entries has those of earlier attempts
	parts   map[string]int
	entries map[string]lessor.JournalEntry // by key
	last    int                            // the highest number that the server has told
	steps   map[string]chan struct{}       // of Once that run now, by key; closed at their end
}

// sendEntry appends an entry to a journal that has at least so many, and returns its number.
type sendEntry func(ctx context.Context, e lessor.JournalAsk, after int) (int, error)

// newJournal returns the journal of a job that was granted.
func newJournal(c *client.Client, g *lessor.Grant, send sendEntry) *Journal {
	return &Journal{
		send: send, loaded: g.Job.JournalEntries == 0, entries: map[string]lessor.JournalEntry{},
		last: g.Job.JournalEntries,
		load: func(ctx context.Context) (entries map[string]lessor.JournalEntry, err error) {
			err = insist(ctx, "read journal", func() error {
				entries = map[string]lessor.JournalEntry{}
				for e, err := range c.AllJournal(ctx, g.Job.ID) {
					if err != nil {
						return err
					}
					entries[e.Key] = e
				}
				return nil
			})
			return entries, err
		},
	}
}

// journalOf returns the journal of a job that this worker runs.
func (w *Worker) journalOf(l *lease) *Journal {
	send := func(ctx context.Context, e lessor.JournalAsk, after int) (n int, err error) {
		l.beats.Beat()
		err = w.save(ctx, l, "append to journal", func() (lessor.HeartbeatAnswer, error) {
			answer, err := w.cfg.Client.Append(ctx, l.id(), oneEntry(w.cfg.ID, e, after))
			n = numberOf(answer)
			return answer.HeartbeatAnswer, err
		})
		return n, err
	}
	return newJournal(w.cfg.Client, &l.grant, send)
}

func oneEntry(worker string, e lessor.JournalAsk, after int) lessor.JournalAppend {
	return lessor.JournalAppend{WorkerID: &worker, After: new(int64(after)), Entries: []lessor.JournalAsk{e}}
}

// numberOf returns the number of the one entry that was appended.
func numberOf(a lessor.JournalAnswer) int {
	if len(a.Numbers) == 0 {
		return 0
	}
	return a.Numbers[0]
}

// Append appends an entry with v as JSON, of up to 64 KiB unless the server says otherwise. A journal has one entry per
// key: if the same entry is there already, Append does nothing. It returns when the server has stored the entry or
// refused it, or when ctx is done; it repeats the call while no server can be reached. If the server has lost entries,
// because its store was restored or a standby took over, Append first appends those again that this attempt knows.
func (j *Journal) Append(ctx context.Context, key, kind string, v any) error {
	data, err := plainjson.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode journal entry: %w", err)
	}
	n := 0
	if j.send != nil {
		if n, err = j.store(ctx, lessor.JournalAsk{Key: &key, Kind: &kind, Data: data}); err != nil {
			return err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, again := j.entries[key]; !again {
		n = cmp.Or(n, len(j.entries)+1)
		j.entries[key] = lessor.JournalEntry{N: n, Key: key, Kind: kind, Data: data}
	}
	j.last = max(j.last, n)
	return nil
}

// store appends an entry on the server, after all that were acknowledged.
func (j *Journal) store(ctx context.Context, e lessor.JournalAsk) (int, error) {
	j.mu.Lock()
	last := j.last
	j.mu.Unlock()
	n, err := j.send(ctx, e, last)
	if lessor.CodeOf(err) != lessor.CodeConflict {
		return n, err
	}
	if err := j.restore(ctx); err != nil {
		return 0, err
	}
	return j.send(ctx, e, 0) // refused again if its key has another entry
}

// restore appends again what the server has lost, as far as this attempt has read or written it.
func (j *Journal) restore(ctx context.Context) error {
	stored, err := j.load(ctx)
	if err != nil {
		return err
	}
	j.mu.Lock()
	known := j.sorted()
	j.mu.Unlock()
	last := len(stored)
	for _, e := range known {
		if _, there := stored[e.Key]; there {
			continue
		}
		if e.N, err = j.send(ctx, lessor.JournalAsk{Key: &e.Key, Kind: &e.Kind, Data: e.Data}, 0); err != nil {
			return err
		}
		last = max(last, e.N)
		j.mu.Lock()
		j.entries[e.Key] = e
		j.mu.Unlock()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = last // not earlier: until all are there, no other entry may follow
	return nil
}

// sorted returns all entries that are known, in order. The caller has locked j.
func (j *Journal) sorted() []lessor.JournalEntry {
	return slices.SortedFunc(maps.Values(j.entries),
		func(a, b lessor.JournalEntry) int { return cmp.Compare(a.N, b.N) })
}

// Entries returns all entries in order. It reads those of earlier attempts from the server at the first call; those of
// this attempt have no At and no Fence.
func (j *Journal) Entries(ctx context.Context) ([]lessor.JournalEntry, error) {
	if err := j.read(ctx); err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.sorted(), nil
}

// Part names the next part of the work: name for the first of this attempt, then name-2, name-3 and so on. Work whose
// parts come in the same order in every attempt finds the entries of each part by it.
func (j *Journal) Part(name string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.parts == nil {
		j.parts = map[string]int{}
	}
	j.parts[name]++
	if n := j.parts[name]; n > 1 {
		return fmt.Sprintf("%s-%d", name, n)
	}
	return name
}

// read reads the entries of earlier attempts, once.
func (j *Journal) read(ctx context.Context) error {
	j.mu.Lock()
	loaded := j.loaded
	j.mu.Unlock()
	if loaded {
		return nil
	}
	entries, err := j.load(ctx)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	maps.Copy(entries, j.entries)
	j.loaded, j.entries = true, entries
	return nil
}

// Journal returns the journal of the job.
func (j *Job[T]) Journal() *Journal {
	if j.lease != nil {
		return j.lease.journal
	}
	if j.byHand == nil {
		j.byHand = &Journal{loaded: true, entries: map[string]lessor.JournalEntry{}}
	}
	return j.byHand
}

// Once runs a step of a job unless an attempt has recorded its result under this key, and records the result. While the
// step runs, other calls with its key wait for it, so it must not call Once with its own key. A step whose worker was
// killed between the two runs again: give external systems the key, so that they can tell. The result must survive
// encoding as JSON. An error of the step is not recorded.
func Once[T, P any](ctx context.Context, job *Job[P], key string, step func() (T, error)) (T, error) {
	var result T
	j := job.Journal()
	if err := j.read(ctx); err != nil {
		return result, err
	}
	e, done, err := j.begin(ctx, key)
	if err != nil {
		return result, err
	}
	if done {
		if err := json.Unmarshal(e.Data, &result); err != nil {
			return result, fmt.Errorf("decode journal entry %q: %w", key, err)
		}
		return result, nil
	}
	defer j.end(key)
	result, err = step()
	if err == nil {
		err = j.Append(ctx, key, "once", result)
	}
	return result, err
}

// begin returns the entry of a step, or makes the caller the one that runs it, who must call end. It waits while
// another one does.
func (j *Journal) begin(ctx context.Context, key string) (e lessor.JournalEntry, done bool, err error) {
	for {
		j.mu.Lock()
		e, done = j.entries[key]
		running := j.steps[key]
		if !done && running == nil {
			if j.steps == nil {
				j.steps = map[string]chan struct{}{}
			}
			j.steps[key] = make(chan struct{})
		}
		j.mu.Unlock()
		if done || running == nil {
			return e, done, nil
		}
		select {
		case <-running:
		case <-ctx.Done():
			return e, false, context.Cause(ctx)
		}
	}
}

func (j *Journal) end(key string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	close(j.steps[key])
	delete(j.steps, key)
}
