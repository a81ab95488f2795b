package scheduler

import (
	"context"
	"hash/maphash"

	"lessor"
	"lessor/internal/rules"
)

// journal is the journal of a job as a pass sees it.
type journal struct {
	size  rules.JournalSize
	known map[string]rules.Entry // those with a key that a call of this pass appends
	added []rules.Entry          // by the last call of this pass; known has those of the calls before it
}

func (j *journal) add(e rules.Entry) {
	if j.known == nil {
		j.known = map[string]rules.Entry{}
	}
	j.known[e.Key] = e
}

// loadJournals reads what the appends of this pass are decided on: the size of a journal at the first append under a
// lease, if the job ran before, and the entries whose keys may be known.
func (p *pass) loadJournals(ctx context.Context, calls []*beatCall) error {
	var resumed []lessor.JobID
	var refs []EntryRef
	for _, c := range calls {
		for i := range c.beats {
			b := &c.beats[i]
			h := p.leases[b.id]
			if len(b.ask.Append) == 0 || h == nil {
				continue
			}
			if p.journals == nil {
				p.journals = map[lessor.JobID]*journal{}
			}
			if p.journals[h.Turn.Job] == nil {
				p.journals[h.Turn.Job] = &journal{size: h.Journal}
				if !h.Journaled() && ranBefore(h) {
					resumed = append(resumed, h.Turn.Job)
				}
			}
			refs = p.l.keys.unsure(refs, h, b.ask.Append)
		}
	}
	if len(p.journals) == 0 {
		return nil
	}
	last, err := p.tx.LastEntries(ctx, resumed)
	if err != nil {
		return err
	}
	for id, e := range last {
		p.journals[id].size = e.Size
	}
	known, err := p.tx.KnownEntries(ctx, refs)
	for _, e := range known {
		p.journals[e.Job].add(e)
	}
	return err
}

// appendEntries decides what a heartbeat appends. A refusal changes nothing.
func (p *pass) appendEntries(h *rules.Held, by rules.Hand, b *beat) error {
	if len(b.ask.Append) == 0 {
		return nil
	}
	if err := rules.Touch(h, by, p.now, p.serving); err != nil {
		return err
	}
	j := p.journals[h.Turn.Job]
	for _, e := range j.added { // seldom: most journals get one append in a pass
		j.add(e)
	}
	j.added = nil
	added, numbers, err := rules.Append(h, j.size, j.known, &b.ask, p.l.cfg.Journal, p.now)
	if err != nil {
		return err
	}
	if len(added) > 0 {
		p.l.keys.add(h, added)
		j.size, j.added = added[len(added)-1].Size, added
		h.Journal = j.size
		p.entries = append(p.entries, added...)
	}
	b.numbers = numbers
	return nil
}

// maxKeys bounds the keys that are remembered, at about 16 bytes each.
const maxKeys = 1 << 20

// knownKeys remembers the keys of journals, as hashes, for leases under which this node alone wrote the whole journal.
// A key that it does not have is new, and the store is not read. It lives as long as the fold.
type knownKeys struct {
	seed   maphash.Seed
	leases map[lessor.LeaseID]map[uint64]struct{}
	size   int
}

func newKnownKeys() *knownKeys {
	return &knownKeys{seed: maphash.MakeSeed(), leases: map[lessor.LeaseID]map[uint64]struct{}{}}
}

// of returns the keys of the journal under a lease, and whether they are all that it has.
func (k *knownKeys) of(h *rules.Held) (keys map[uint64]struct{}, all bool) {
	keys = k.leases[h.ID]
	begun := h.Journaled() || ranBefore(h)
	return keys, len(keys) == h.Journal.Entries && (keys != nil || !begun)
}

// unsure adds to refs the keys that the journal of h may already have.
func (k *knownKeys) unsure(refs []EntryRef, h *rules.Held, entries []rules.Entry) []EntryRef {
	keys, all := k.of(h)
	for i := range entries {
		if _, has := keys[maphash.String(k.seed, entries[i].Key)]; has || !all {
			refs = append(refs, EntryRef{Job: h.Turn.Job, Key: entries[i].Key})
		}
	}
	return refs
}

// add remembers the keys of entries that are about to be appended under h.
func (k *knownKeys) add(h *rules.Held, entries []rules.Entry) {
	keys, all := k.of(h)
	if !all {
		k.drop(h)
		return
	}
	if k.size += len(entries); k.size > maxKeys {
		k.size = 0
		clear(k.leases)
		return
	}
	if keys == nil {
		keys = map[uint64]struct{}{}
		k.leases[h.ID] = keys
	}
	for i := range entries {
		keys[maphash.String(k.seed, entries[i].Key)] = struct{}{}
	}
}

// drop forgets the keys of a lease that has ended.
func (k *knownKeys) drop(h *rules.Held) {
	k.size -= len(k.leases[h.ID])
	delete(k.leases, h.ID)
}
