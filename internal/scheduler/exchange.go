package scheduler

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"lessor"
)

// noteLife is how long another node's notes count: three times the interval between two exchanges.
const noteLife = 3 * sampleEvery

// workerNote describes one worker, or all workers with tokens of one tenant, to other nodes.
type workerNote struct {
	Worker string           `json:"worker"`           // "" = all
	Tenant *lessor.TenantID `json:"tenant,omitempty"` // of its token; nil = bound to none
	At     lessor.Instant   `json:"at"`
	Types  []string         `json:"types"` // [] = all, or of a worker none
	Agent  string           `json:"agent"`
	// Starving is set in a note that says nothing else, so that a node of the release before can skip it.
	Starving *starvingNote `json:"starving,omitempty"`
}

// exchangeWorkers tells other nodes which workers have recently requested leases here, which job starves, and whether
// callers follow the records here, and reads the same from them. If an exchange fails, the next one replaces it.
func (s *Scheduler) exchangeWorkers(ctx context.Context) {
	if !s.store.Shared() || ctx.Err() != nil {
		return
	}
	s.askForRecords(ctx)
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	lists, err := s.store.ExchangeWorkers(ctx, s.workers.notes(), noteLife)
	if err != nil || slices.EqualFunc(lists, s.workers.othersNotes, bytes.Equal) {
		return
	}
	others := map[lessor.TenantID]*tenantWorkers{}
	var starving []starvingNote
	for _, raw := range lists {
		var list []workerNote
		if json.Unmarshal(raw, &list) == nil { // another release may write it otherwise
			addNotes(others, list)
			for _, m := range list {
				if m.Starving != nil {
					starving = append(starving, *m.Starving)
				}
			}
		}
	}
	s.workers.mu.Lock()
	defer s.workers.mu.Unlock()
	s.workers.others, s.workers.othersNotes, s.workers.othersStarving = others, lists, starving
}

// noteStarving sets the starving job that other nodes are told.
func (w *workers) noteStarving(n starvingNote) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ownStarving != n {
		w.ownStarving, w.ownNotes = n, nil
	}
}

// starvingElsewhere returns the starving jobs of other nodes.
func (w *workers) starvingElsewhere() []starvingNote {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.othersStarving
}

// addNotes adds the notes of one node. A node of the release before sends no note about all workers of a tenant: then
// the types of each worker count.
func addNotes(others map[lessor.TenantID]*tenantWorkers, list []workerNote) {
	summed := slices.ContainsFunc(list, func(m workerNote) bool { return m.Worker == "" })
	for _, m := range list {
		var space lessor.TenantID
		if m.Tenant != nil {
			space = *m.Tenant
		}
		c := others[space]
		if c == nil {
			c = &tenantWorkers{}
			others[space] = c
		}
		var s *seenWorker
		if m.Worker != "" {
			if known := c.workers.find(m.Worker); known != nil && known.at >= m.At {
				continue
			}
			s = &c.workers.touch(m.Worker, m.At).is
			*s = seenWorker{agent: m.Agent}
		}
		if len(m.Types) == 0 && (s == nil || !summed) {
			c.all = max(c.all, m.At)
		}
		for _, typ := range m.Types {
			t := c.types.touch(typ, m.At)
			if s != nil {
				s.ask(t, m.At)
			}
		}
	}
}

// maxNotes bounds the notes of a node, in bytes. Each tenant's workers have the same share of it.
const maxNotes = 1 << 20

// notes returns a list in JSON of the workers that were seen on this node: for each tenant the types that its workers
// ask for, then the workers, the latest first, as many as fit. The job that starves comes last. The list is the same
// until a worker is seen again.
func (w *workers) notes() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ownNotes != nil {
		return w.ownNotes
	}
	now := w.last
	var list [][]byte
	for space, c := range w.own {
		left := maxNotes / len(w.own)
		add := func(m workerNote) bool {
			if !space.IsZero() {
				m.Tenant = &space
			}
			raw, err := json.Marshal(m)
			if err != nil || len(raw) > left { // it holds nothing that cannot be written
				return false
			}
			left -= len(raw) + 1
			list = append(list, raw)
			return true
		}
		if sum := c.sum(now); sum != nil && !add(*sum) {
			add(workerNote{At: sum.At, Types: []string{}}) // more types than fit are all
		}
		c.workers.each(func(s *seen[seenWorker]) bool {
			return lately(s.at, now) && add(
				workerNote{Worker: s.name, At: s.at, Types: s.is.asksFor(now), Agent: s.is.agent},
			)
		})
	}
	if w.ownStarving.Since != 0 {
		if raw, err := json.Marshal(workerNote{Types: []string{}, Starving: &w.ownStarving}); err == nil {
			list = append(list, raw)
		}
	}
	w.ownNotes = slices.Concat([]byte{'['}, bytes.Join(list, []byte{','}), []byte{']'})
	return w.ownNotes
}

// sum combines the types that a tenant's workers request; nil = none.
func (c *tenantWorkers) sum(now lessor.Instant) *workerNote {
	if lately(c.all, now) {
		return &workerNote{At: c.all, Types: []string{}}
	}
	m := &workerNote{}
	c.types.each(func(t *seen[struct{}]) bool {
		if !lately(t.at, now) {
			return false
		}
		m.At, m.Types = max(m.At, t.at), append(m.Types, t.name)
		return true
	})
	if m.Types == nil {
		return nil
	}
	return m
}
