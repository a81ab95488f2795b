package lanes

import (
	"testing"

	"pgregory.net/rapid"

	"lessor"
	"lessor/internal/rules"
)

// TestTakeNeverPassesCapOrLock is P11: whatever the requests and however policies change, no grant by Next and Take
// takes a tenant or class over its cap, or takes a lock that is held. It is also P8: every job is granted once nothing
// blocks it.
func TestTakeNeverPassesCapOrLock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(t, label) }, t.Fatalf)
		for range 60 {
			switch m.roll("step", 10) {
			case 0, 1, 2, 3:
				m.enqueue()
			case 4:
				m.free()
			case 5:
				m.setTenant()
			case 6:
				m.setClass()
			default:
				if p, ok := m.x.Next(m.randomFilter()); ok {
					takeWithin(m, p)
				}
			}
		}
		finish(m)
	})
}

func takeWithin(m *machine, p Pick) {
	t := m.x.Take(p)
	m.o.queued = deleteTurn(m.o.queued, t)
	m.o.held = append(m.o.held, t)
	c := m.o.counts()
	l := p.Lane
	if limit := m.o.policy[l.Tenant]; limit.Paused || limit.Cap > 0 && c.Tenants[l.Tenant] > limit.Cap {
		m.fatal("tenant has %d leases under %+v", c.Tenants[l.Tenant], limit)
	}
	k := Owned{l.Tenant, l.Class}
	if limit := m.o.class[k]; limit.Paused || limit.Cap > 0 && c.Classes[k] > limit.Cap {
		m.fatal("class has %d leases under %+v", c.Classes[k], limit)
	}
	if k := (Owned{l.Tenant, l.LockKey}); l.LockKey != "" && c.Locks[k] > 1 {
		m.fatal("lock is held by %d", c.Locks[k])
	}
}

func deleteTurn(ts []rules.Turn, t rules.Turn) []rules.Turn {
	for i, q := range ts {
		if q == t {
			return append(ts[:i], ts[i+1:]...)
		}
	}
	return ts
}

// finish frees all leases and grants until nothing is queued.
func finish(m *machine) {
	for id, p := range m.o.policy {
		p.Paused = false
		m.x.SetTenant(id, p)
	}
	for k, p := range m.o.class {
		p.Paused = false
		m.x.SetClass(k.Tenant, k.Name, p)
	}
	for _, h := range m.o.held {
		m.x.Free(h.Lane)
	}
	for range m.o.queued {
		p, ok := m.x.Next(&Filter{Usable: 100})
		if !ok {
			m.fatal("nothing is next, and %v are queued", m.x.Depth())
		}
		m.x.Free(m.x.Take(p).Lane)
	}
	if m.x.Depth() != [lessor.Priorities]int{} || m.x.Leases() != 0 || m.x.Leased() != 0 {
		m.fatal("at the end %v are queued, %d leases, %d units", m.x.Depth(), m.x.Leases(), m.x.Leased())
	}
}
