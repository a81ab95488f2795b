package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// step is an entry of a journal. Every attempt of a job would append the same under its key.
func step(i int) lessor.JournalAsk {
	return lessor.JournalAsk{
		Key: new(fmt.Sprintf("step-%d", i)), Kind: new("step"), Data: fmt.Appendf(nil, `{"step":%d}`, i),
	}
}

// journal appends to the journal of a job: new entries, such as are there already, and now and then one that
// contradicts what is there. Half of the calls say which number the worker has seen: only a journal that has lost it
// refuses.
func (k *worker) journal(g *heldLease) {
	j, sent := g.lease.job, k.world.now
	a := lessor.JournalAppend{WorkerID: &k.name}
	for range 1 + k.random.IntN(3) {
		a.Entries = append(a.Entries, step(k.random.IntN(len(j.journal)+2)))
	}
	last := &a.Entries[len(a.Entries)-1]
	contradicts := j.journal[*last.Key] != 0 && k.chance(20)
	if contradicts {
		last.Data = json.RawMessage(`{"step":-1}`)
	}
	if k.chance(50) {
		a.After = new(int64(g.numbered))
	}
	before := j.confirmed
	answer, err := call(k.client, "append", func(ctx context.Context, n *node) (lessor.JournalAnswer, error) {
		return n.Append(ctx, k.caller, g.lease.id, a)
	})
	k.heartbeatAnswered(g, answer.HeartbeatAnswer, err, sent)
	if lessor.CodeOf(err) == lessor.CodeConflict && !contradicts {
		if k.world.known.backAt == 0 {
			k.world.fail("journal", "an append after entry %d of job %v was refused: %v", g.numbered, j.id, err)
		}
		g.numbered = 0
	}
	switch {
	case err != nil || k.world.known.stale(sent):
	case contradicts:
		k.world.fail("journal", "job %v has entry %s, and another was accepted under its key", j.id, *last.Key)
	default:
		k.world.known.appended(j, a.Entries, answer.Numbers)
		if a.After != nil && len(j.entries) > 0 && int(*a.After) > len(j.entries) {
			k.world.fail("journal", "an append after entry %d of job %v was accepted, and there are %v", *a.After, j.id,
				j.entries)
		}
		g.numbered = max(g.numbered, slices.Max(answer.Numbers))
		k.receive(g, answer.Messages, before, sent)
	}
}

// appended takes the answer to an append: what was acknowledged is in the tables, under the same numbers for ever.
func (b *knowledge) appended(j *knownJob, asked []lessor.JournalAsk, numbers []int) {
	if j.journal == nil {
		j.journal = map[string]int{}
	}
	for i, e := range asked {
		if was := j.journal[*e.Key]; was != 0 && was != numbers[i] {
			b.fail("journal", "entry %s of job %v was number %d and is number %d", *e.Key, j.id, was, numbers[i])
		}
		j.journal[*e.Key] = numbers[i]
	}
	b.read(func(v scheduler.View) error { return b.journaled(v, j) })
}

// journaled checks the journal of a job: numbers without gaps, one entry a key, in the order of its leases, what was
// seen before first, and everything that was acknowledged in it. A job that continues another begins with the entries
// of the other's leases.
func (b *knowledge) journaled(v scheduler.View, j *knownJob) error {
	if b.config.Retention.Jobs != 0 {
		return nil
	}
	entries, err := v.Entries(ctx, j.id, 0, 1000)
	if err != nil {
		return err
	}
	seen, fence := make([]string, len(entries)), int64(0)
	for i, e := range entries {
		seen[i] = e.Key
		own := slices.Contains(j.fences, e.Fence)
		if e.N != i+1 || own && e.Fence < fence || i < len(j.entries) && j.entries[i] != e.Key {
			b.fail("journal", "entry %d of job %v is %+v, before it were %v", i+1, j.id, e.JournalEntry, j.entries)
		}
		if own {
			fence = e.Fence
		}
		if n := j.journal[e.Key]; n != 0 && n != e.N {
			b.fail("journal", "entry %s of job %v was acknowledged as number %d and is number %d", e.Key, j.id, n, e.N)
		}
	}
	for key, n := range j.journal {
		if n > len(entries) || entries[n-1].Key != key {
			b.fail("journal", "entry %s of job %v was acknowledged as number %d; there are %v", key, j.id, n, seen)
		}
	}
	j.entries = seen
	return nil
}

// checkRecords checks the journals of all jobs and the output of all attempts.
func (b *knowledge) checkRecords() {
	b.read(func(v scheduler.View) error {
		for _, j := range b.jobs {
			if len(j.journal) > 0 && !j.lost {
				if err := b.journaled(v, j); err != nil {
					return err
				}
			}
		}
		for _, l := range b.leases {
			if l.printed != nil && !l.lost {
				if err := b.printed(v, l); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// readJournal reads the journal of a job, in pages.
func (c *client) readJournal(j *knownJob, sent time.Duration) {
	known := len(j.journal)
	all, whole := pages(c, "journal", func(ctx context.Context, n *node, after string) ([]int, string, error) {
		page, next, err := n.Journal(ctx, c.caller, j.id, 3, after)
		numbers := make([]int, len(page))
		for i := range page {
			numbers[i] = page[i].N
		}
		return numbers, next, err
	})
	if whole && len(all) < known && !j.lost && !c.world.known.stale(sent) && c.world.config.Retention.Jobs == 0 {
		c.world.fail("journal", "job %v has %d entries in its journal, and %d were acknowledged", j.id, len(all), known)
	}
}
