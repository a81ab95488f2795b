package scheduler

import (
	"context"
	"encoding/json"
	"time"

	"lessor"
)

// metFor is how long what another node told of its workers counts: three times as long as it takes to tell it again.
const metFor = 3 * sampleEvery

// met is a worker as nodes tell each other of it.
type met struct {
	Worker string           `json:"worker"`
	Tenant *lessor.TenantID `json:"tenant,omitempty"` // of its token; nil = bound to none
	At     lessor.Instant   `json:"at"`
	Types  []string         `json:"types"`
	Agent  string           `json:"agent"`
}

// meet exchanges with other nodes who asked for work lately, and whether anybody follows the records here. A failed exchange is made up for by the next.
func (s *Scheduler) meet(ctx context.Context) {
	if !s.store.Shared() || ctx.Err() != nil {
		return
	}
	s.askForRecords(ctx)
	known, err := json.Marshal(s.workers.told())
	if err != nil {
		return // it holds nothing that cannot be written
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	told, err := s.store.Meet(ctx, known, metFor)
	if err != nil {
		return
	}
	others := map[workerKey]sighting{}
	for _, raw := range told {
		var list []met
		if json.Unmarshal(raw, &list) != nil {
			continue // a release that tells it otherwise
		}
		for _, m := range list {
			k := workerKey{worker: m.Worker}
			if m.Tenant != nil {
				k.tenant, k.bound = *m.Tenant, true
			}
			if m.At > others[k].at {
				others[k] = sighting{at: m.At, types: m.Types, agent: m.Agent}
			}
		}
	}
	s.workers.mu.Lock()
	defer s.workers.mu.Unlock()
	s.workers.others = others
}

// told returns who was seen on this node.
func (w *workers) told() []met {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]met, 0, len(w.seen))
	for k, s := range w.seen {
		m := met{Worker: k.worker, At: s.at, Types: s.types, Agent: s.agent}
		if k.bound {
			tenant := k.tenant
			m.Tenant = &tenant
		}
		list = append(list, m)
	}
	return list
}
