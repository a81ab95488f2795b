package scheduler

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// The bounds of the workers and types that are remembered, because a caller can make up as many names as it likes. When
// there are too many, the tenant with the most forgets the one that was seen least recently.
const (
	workerLife   = 5 * time.Minute
	maxWorkers   = 20_000
	maxWorkersOf = 5_000 // of one tenant
	maxTypes     = 20_000
	maxTypesOf   = 1_000 // of one tenant
	maxTypesEach = 20    // shown of one worker
	// noteEvery is how often the types of a worker are recorded if it always requests the same.
	noteEvery = 10 * time.Second
)

// workers remembers the workers that asked for work or sent a heartbeat lately, on this node and, from the exchange, on
// others. A worker is identified by its name and the tenant of its token (zero = none): two tenants may use one name.
type workers struct {
	mu          sync.Mutex
	own         map[lessor.TenantID]*tenantWorkers
	others      map[lessor.TenantID]*tenantWorkers
	names       int            // of all tenants
	types       int            // of all tenants
	last        lessor.Instant // when any was seen
	seed        maphash.Seed   // of what a worker asks for
	ownNotes    []byte         // for other nodes; nil = they have changed
	othersNotes [][]byte       // of which others was made

	ownStarving    starvingNote // for other nodes
	othersStarving []starvingNote
}

// beat notes a call of a worker that holds a lease. Calls right after the grant say no more than the request did.
func (w *workers) beat(c *Caller, h *rules.Held, now lessor.Instant) {
	if now.Sub(h.IssuedAt).Abs() < moveEvery {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(c, h.Worker, now)
}

// asked notes a request; kind names what it asks for.
func (w *workers) asked(c *Caller, a *rules.Ask, kind string, now lessor.Instant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of, s := w.note(c, a.Worker, now)
	asked := maphash.String(w.seed, kind)
	if s.asked == asked && now.Sub(s.noted).Abs() < noteEvery {
		return
	}
	s.asked, s.noted = asked, now
	if len(a.Types) == 0 {
		s.all, of.all = now, now
	}
	for _, typ := range a.Types {
		t := of.types.see(typ, now)
		if t == nil {
			w.roomForType(of, now)
			t = of.types.add(typ, now)
		}
		s.ask(t, now)
	}
}

// note records that a worker was seen.
func (w *workers) note(c *Caller, worker string, now lessor.Instant) (*tenantWorkers, *seenWorker) {
	of := w.own[c.space()]
	if of == nil {
		of = w.form(c.space(), now)
	}
	w.last, w.ownNotes = now, nil
	s := of.workers.see(worker, now)
	if s == nil {
		w.roomForWorker(of, now)
		s = of.workers.add(worker, now)
	}
	if c.Agent != "" {
		s.is.agent = c.Agent
	}
	return of, &s.is
}

// setBack counts workers that were seen on a clock that was ahead as seen now.
func (w *workers) setBack(now lessor.Instant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last, w.ownNotes = min(w.last, now), nil
	for _, tenants := range []map[lessor.TenantID]*tenantWorkers{w.own, w.others} {
		for _, c := range tenants {
			c.setBack(now)
		}
	}
}

// form begins a tenant's entry, and forgets those of which no worker was seen for long.
func (w *workers) form(space lessor.TenantID, now lessor.Instant) *tenantWorkers {
	if w.own == nil {
		w.own, w.seed = map[lessor.TenantID]*tenantWorkers{}, maphash.MakeSeed()
	}
	for k, c := range w.own {
		if !lately(c.workers.latest(), now) {
			w.names, w.types = w.names-c.workers.len(), w.types-c.types.len()
			delete(w.own, k)
		}
	}
	c := &tenantWorkers{}
	w.own[space] = c
	return c
}

// roomForWorker makes room for a name that is new to its tenant.
func (w *workers) roomForWorker(c *tenantWorkers, now lessor.Instant) {
	for old := c.workers.oldest(); old != nil && !lately(old.at, now); old = c.workers.oldest() {
		c.workers.drop()
		w.names--
	}
	if c.workers.len() >= maxWorkersOf {
		c.workers.drop()
		w.names--
	} else if w.names >= maxWorkers {
		w.largest(func(c *tenantWorkers) int { return c.workers.len() }).workers.drop()
		w.names--
	}
	w.names++
}

// roomForType makes room for a type that is new to its tenant.
func (w *workers) roomForType(c *tenantWorkers, now lessor.Instant) {
	if c.types.len() >= maxTypesOf {
		c.dropType(now)
		w.types--
	} else if w.types >= maxTypes {
		w.largest(func(c *tenantWorkers) int { return c.types.len() }).dropType(now)
		w.types--
	}
	w.types++
}

func (w *workers) largest(size func(*tenantWorkers) int) (most *tenantWorkers) {
	for _, c := range w.own {
		if most == nil || size(c) > size(most) {
			most = c
		}
	}
	return most
}

// asks reports whether a worker asked lately for a type of a tenant's jobs: with a token of the tenant, or with one of
// none.
func (w *workers) asks(typ string, tenant lessor.TenantID, now lessor.Instant) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, tenants := range []map[lessor.TenantID]*tenantWorkers{w.own, w.others} {
		if tenants[lessor.TenantID{}].asks(typ, now) || tenants[tenant].asks(typ, now) {
			return true
		}
	}
	return false
}

// each calls fn once for each worker that was seen recently on any node, with the data of the node that saw it last.
func (w *workers) each(now lessor.Instant, fn func(rules.Holder, *seen[seenWorker])) {
	visit := func(tenants, beside map[lessor.TenantID]*tenantWorkers, wins func(s, o *seen[seenWorker]) bool) {
		for space, c := range tenants {
			c.workers.each(func(s *seen[seenWorker]) bool {
				other := beside[space].find(s.name)
				if lately(s.at, now) && (other == nil || wins(s, other)) {
					fn(rules.Holder{Space: space, Worker: s.name}, s)
				}
				return true
			})
		}
	}
	visit(w.own, w.others, func(s, o *seen[seenWorker]) bool { return s.at >= o.at })
	visit(w.others, w.own, func(s, o *seen[seenWorker]) bool { return s.at > o.at })
}

// Workers lists the workers seen in the last five minutes, by name. A tenant's caller sees the workers that called with
// its tenant's tokens.
func (s *Scheduler) Workers(ctx context.Context, c Caller) ([]lessor.Worker, error) {
	list := []lessor.Worker{}
	err := s.read(ctx, c, func(l *loop) {
		now := l.fold.Serving.LastBeat
		s.workers.mu.Lock()
		defer s.workers.mu.Unlock()
		s.workers.each(now, func(k rules.Holder, w *seen[seenWorker]) {
			if c.Tenant != nil && k.Space != *c.Tenant {
				return
			}
			h := l.fold.Holds(k)
			list = append(list, lessor.Worker{
				WorkerID: k.Worker, LastSeenAt: w.at, Leases: h.Leases, Units: h.Units,
				Types: w.is.asksFor(now), Agent: w.is.agent,
			})
		})
	})
	slices.SortFunc(list, func(a, b lessor.Worker) int { return cmp.Compare(a.WorkerID, b.WorkerID) })
	return list, err
}
