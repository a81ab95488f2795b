package fold

import (
	"maps"
	"slices"

	"lessor"
	"lessor/internal/rules"
)

// Block says why the jobs of a definition may not be granted.
type Block struct {
	Definition string
	Tenant     lessor.TenantID
	Paused     bool // or disabled
	Circuit    rules.Circuit
}

// blocks has the definitions whose jobs may not be granted.
type blocks struct {
	all  map[string]Block
	open map[string]struct{} // of these, those with an open circuit: a trial may be due
}

func newBlocks() blocks { return blocks{all: map[string]Block{}, open: map[string]struct{}{}} }

// Blocked returns what blocks a definition's jobs; the zero Block if nothing does.
func (f *Fold) Blocked(definition string) Block { return f.blocked.all[definition] }

// Blocks calls fn with every block.
func (f *Fold) Blocks(fn func(Block)) {
	for _, b := range f.blocked.all {
		fn(b)
	}
}

// Block brings the order of turns up to date with what blocks a definition's jobs now.
func (f *Fold) Block(b Block) {
	blocked := b.Paused || !b.Circuit.Closed()
	f.Index.SetDefinition(b.Tenant, b.Definition, blocked)
	delete(f.blocked.open, b.Definition)
	delete(f.blocked.all, b.Definition)
	if b.Paused || !b.Circuit.Idle() {
		f.blocked.all[b.Definition] = b
	}
	if b.Circuit.State == lessor.CircuitOpen {
		f.blocked.open[b.Definition] = struct{}{}
		f.planTrial(b.Circuit.RetryAt, 0)
	}
	f.woken.All = f.woken.All || !blocked
}

// Unblock lets the jobs of a definition be granted, as those of a deleted one.
func (f *Fold) Unblock(definition string) {
	if b, known := f.blocked.all[definition]; known {
		f.Block(Block{Definition: definition, Tenant: b.Tenant})
	}
}

// BlockAll replaces all blocks.
func (f *Fold) BlockAll(all []Block) {
	was := f.blocked.all
	f.blocked = newBlocks()
	for _, b := range all {
		if was[b.Definition].Tenant == b.Tenant {
			delete(was, b.Definition)
		}
	}
	for _, b := range was { // first, because an id may have passed to another tenant
		f.Block(Block{Definition: b.Definition, Tenant: b.Tenant})
	}
	for _, b := range all {
		f.Block(b)
	}
}

// SetPaused notes whether a definition is paused or disabled.
func (f *Fold) SetPaused(d *rules.Definition) {
	b := f.blocked.all[d.ID]
	b.Definition, b.Tenant, b.Paused = d.ID, d.Tenant, !d.Ticking()
	f.Block(b)
}

// SetCircuit notes the state of a circuit, and reports whether it differs for other nodes.
func (f *Fold) SetCircuit(c *rules.Circuit) (differs bool) {
	b := f.blocked.all[c.Definition]
	differs = b.Circuit.State != c.State || b.Circuit.RetryAt != c.RetryAt
	b.Definition, b.Tenant, b.Circuit = c.Definition, c.Tenant, *c
	f.Block(b)
	return differs
}

// Trials returns the definitions with an open circuit of which one queued job may be tried now.
func (f *Fold) Trials(now lessor.Instant) (ids []string) {
	for id := range f.blocked.open {
		b := f.blocked.all[id]
		if !b.Paused && b.Circuit.Ready(now) && f.Index.Waiting(b.Tenant, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// OpenTrials unblocks those definitions with an open circuit of which try says that a job may be tried now, and blocks
// the others. One that was unblocked stays so until it is blocked here or by Block: if no job of it was taken, what
// held its jobs back may go, and Index.Opened names them then.
func (f *Fold) OpenTrials(try func(definition string) bool) {
	for _, id := range slices.Sorted(maps.Keys(f.blocked.open)) {
		f.Index.SetDefinition(f.blocked.all[id].Tenant, id, !try(id))
	}
}

// Cooling returns the definitions whose open circuit may not be tried yet.
func (f *Fold) Cooling(now lessor.Instant) (ids []string) {
	for id := range f.blocked.open {
		if f.blocked.all[id].Circuit.RetryAt > now {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// WakeTrials wakes every waiting request if the trial of an open circuit has become due since the last call, and
// reports whether it did.
func (f *Fold) WakeTrials(now lessor.Instant) bool {
	if f.TrialAt == 0 || f.TrialAt > now {
		return false
	}
	f.TrialAt, f.woken.All = 0, true
	for id := range f.blocked.open {
		f.planTrial(f.blocked.all[id].Circuit.RetryAt, now)
	}
	return true
}

// PlanTrial has WakeTrials wake requests at an instant, because a circuit could not be tried before.
func (f *Fold) PlanTrial(at lessor.Instant) { f.planTrial(at, 0) }

// planTrial notes that a circuit may be tried at an instant, if that is not past.
func (f *Fold) planTrial(at, now lessor.Instant) {
	if at > now && (f.TrialAt == 0 || at < f.TrialAt) {
		f.TrialAt = at
	}
}

// PlanTick records when a definition is due; 0 = never.
func (f *Fold) PlanTick(due lessor.Instant) {
	if due != 0 && (f.TickAt == 0 || due < f.TickAt) {
		f.TickAt = due
	}
}
