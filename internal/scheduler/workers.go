package scheduler

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// Workers are remembered for as long as they are shown, and no more of them than this.
const (
	workerLife = 5 * time.Minute
	maxWorkers = 20000
)

// workers remembers who asked for work or beat lately: on this node, and what other nodes told.
type workers struct {
	mu     sync.Mutex
	seen   map[workerKey]*sighting
	others map[workerKey]sighting
}

// workerKey keeps tenants apart: two tenants may use one name.
type workerKey struct {
	tenant lessor.TenantID
	bound  bool
	worker string
}

type sighting struct {
	at    lessor.Instant
	types []string
	agent string
}

func (w *workers) beat(c Caller, worker string, now lessor.Instant) { w.note(c, worker, nil, now) }

func (w *workers) asked(c Caller, a rules.Ask, now lessor.Instant) {
	types := a.Types
	if types == nil {
		types = []string{}
	}
	w.note(c, a.Worker, types, now)
}

func (w *workers) note(c Caller, worker string, types []string, now lessor.Instant) {
	k := workerKey{worker: worker}
	if c.Tenant != nil {
		k.tenant, k.bound = *c.Tenant, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.seen[k]
	if s == nil {
		w.forget(now)
		if len(w.seen) >= maxWorkers {
			return
		}
		s = &sighting{types: []string{}}
		w.seen[k] = s
	}
	s.at = now
	if types != nil {
		s.types = types
	}
	if c.Agent != "" {
		s.agent = c.Agent
	}
}

// forget drops those not seen for long, when a new one comes and there are many.
func (w *workers) forget(now lessor.Instant) {
	if w.seen == nil {
		w.seen = map[workerKey]*sighting{}
	}
	if len(w.seen) < maxWorkers {
		return
	}
	for k, s := range w.seen {
		if now.Sub(s.at) > workerLife {
			delete(w.seen, k)
		}
	}
}

// asks reports whether somebody asked for a type lately.
func (w *workers) asks(typ string, tenant lessor.TenantID, now lessor.Instant) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k, s := range w.all(now) {
		if (!k.bound || k.tenant == tenant) && (len(s.types) == 0 || slices.Contains(s.types, typ)) {
			return true
		}
	}
	return false
}

// all returns those seen lately on any node, each once.
func (w *workers) all(now lessor.Instant) iter.Seq2[workerKey, sighting] {
	return func(yield func(workerKey, sighting) bool) {
		for k, s := range w.seen {
			last := *s
			if o, met := w.others[k]; met && o.at > last.at {
				last = o
			}
			if now.Sub(last.at) <= workerLife && !yield(k, last) {
				return
			}
		}
		for k, s := range w.others {
			if w.seen[k] == nil && now.Sub(s.at) <= workerLife && !yield(k, s) {
				return
			}
		}
	}
}

// Workers lists those seen in the last five minutes, by name. A tenant's caller sees those that came with its tenant's
// tokens.
func (s *Scheduler) Workers(ctx context.Context, c Caller) ([]lessor.Worker, error) {
	list := []lessor.Worker{}
	err := s.look(ctx, func() {
		now := s.fold.serving.LastBeat
		s.workers.mu.Lock()
		defer s.workers.mu.Unlock()
		for k, seen := range s.workers.all(now) {
			if c.Tenant != nil && (!k.bound || k.tenant != *c.Tenant) {
				continue
			}
			h := s.fold.holders[k.worker]
			list = append(list, lessor.Worker{
				WorkerID: k.worker, LastSeenAt: seen.at, Leases: h.leases, Units: h.units, Types: seen.types, Agent: seen.agent,
			})
		}
	})
	slices.SortFunc(list, func(a, b lessor.Worker) int { return cmp.Compare(a.WorkerID, b.WorkerID) })
	return list, err
}
