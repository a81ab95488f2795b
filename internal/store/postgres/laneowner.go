package postgres

import (
	"context"
	"sync"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/row"
)

// owner is the tenant and the definition to which the jobs of a lane belong.
type owner struct {
	tenant     lessor.TenantID
	definition string // "" = plain jobs
}

// owners caches the owners of lanes, so that a row can name its owner without a join.
type owners struct {
	mu    sync.Mutex
	known map[rules.LaneID]owner
}

func (o *owners) learn(id rules.LaneID, l *rules.Lane) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil || len(o.known) >= maxLanes {
		o.known = map[rules.LaneID]owner{}
	}
	o.known[id] = owner{tenant: l.Tenant, definition: l.Definition}
}

func (o *owners) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known = nil
}

func (o *owners) find(id rules.LaneID) (owner, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	found, ok := o.known[id]
	return found, ok
}

// laneOf returns the lane of a job whose new row names the owner; 0 if the row does not. The row of a job that waits
// for its first grant does not.
func laneOf(m *scheduler.Move) rules.LaneID {
	switch {
	case m.To == rules.Ended:
		return m.Done.Attempt.Turn.Lane
	case m.To == rules.Leased:
		return m.Held.Turn.Lane
	case m.Turn.Fence != 0:
		return m.Turn.Lane
	}
	return 0
}

// ownerRow names the owner of a job.
func ownerRow(c *row.Codec, o *owner) {
	row.ID(c, "tenant", &o.tenant.UUID)
	row.TextOrNull(c, "definition", &o.definition)
}

func (t *tx) bindOwner(c *row.Codec, m *scheduler.Move) {
	o := t.owners[laneOf(m)]
	ownerRow(c, &o)
}

// loadOwners makes sure that t.owners has the owners of jobs that move.
func (t *tx) loadOwners(ctx context.Context, moves []scheduler.Move) error {
	if t.owners == nil {
		t.owners = map[rules.LaneID]owner{}
	}
	var unknown []rules.LaneID
	for i := range moves {
		id := laneOf(&moves[i])
		if _, ok := t.owners[id]; ok || id == 0 {
			continue
		}
		found, ok := t.store.owners.find(id)
		if !ok {
			unknown = append(unknown, id)
		}
		t.owners[id] = found
	}
	lanes, err := t.LanesByID(ctx, unknown)
	for id, l := range lanes {
		t.owners[id] = owner{tenant: l.Tenant, definition: l.Definition}
	}
	return err
}
