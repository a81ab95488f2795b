package lanes

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/google/go-cmp/cmp"

	"lessor"
	"lessor/internal/rules"
)

// machine runs the same random steps on an Index and on the oracle.
type machine struct {
	fatal func(format string, args ...any)
	roll  func(label string, n int) int // 0..n-1

	x      *Index
	o      *oracle
	ids    map[rules.Lane]rules.LaneID
	seq    int64
	gaps   []int64  // seqs that were skipped, for jobs that become visible late
	filter []Filter // kept between requests, as their caches are
}

func newMachine(roll func(string, int) int, fatal func(string, ...any)) *machine {
	m := &machine{fatal: fatal, roll: roll, o: newOracle(), ids: map[rules.Lane]rules.LaneID{}}
	first := []Policy{{}, {Weight: 3}, {Cap: 2}, {Weight: 2, Cap: 1}, {Paused: true}}
	m.x = New(func(id lessor.TenantID) Policy {
		p := first[int(id.UUID[15])%len(first)]
		m.o.policy[id] = p
		return p
	})
	m.filter = make([]Filter, 4)
	return m
}

func (m *machine) pick(label string, choices ...string) string {
	return choices[m.roll(label, len(choices))]
}

func (m *machine) tenant() lessor.TenantID { return tenantID(m.roll("tenant", 5)) }

// lane returns a random lane, registering it if it is new.
func (m *machine) lane() rules.LaneID {
	l := rules.Lane{
		Tenant:     m.tenant(),
		Class:      m.pick("class", "", "", "a", "b"),
		Priority:   lessor.Priority([]int{1, 1, 1, 0, 2, 3}[m.roll("priority", 6)]),
		Type:       m.pick("type", "x", "x", "y", "z"),
		Unique:     m.roll("unique", 5) == 0,
		Units:      []int{1, 1, 1, 2, 5}[m.roll("units", 5)],
		LockKey:    m.pick("lock", "", "", "", "k", "l"),
		Definition: m.pick("definition", "", "", "", "d", "e"),
	}
	id, known := m.ids[l]
	if !known {
		id = rules.LaneID(7*len(m.ids) + 3)
		m.ids[l] = id
		m.o.add(id, l)
	}
	if m.roll("drop", 3) == 0 && m.idle(id) {
		m.x.Drop(id)
		if m.x.Known(id) {
			m.fatal("lane %d is known after it was dropped", id)
		}
	}
	m.x.Add(id, l)
	return id
}

// idle reports whether a lane has neither jobs nor leases.
func (m *machine) idle(id rules.LaneID) bool {
	is := func(t rules.Turn) bool { return t.Lane == id }
	return !slices.ContainsFunc(m.o.queued, is) && !slices.ContainsFunc(m.o.held, is)
}

func (m *machine) enqueue() {
	var seq int64
	if n := len(m.gaps); n > 0 && m.roll("late", 3) == 0 {
		i := m.roll("gap", n)
		seq = m.gaps[i]
		m.gaps = slices.Delete(m.gaps, i, i+1)
	} else {
		if m.roll("skip", 4) == 0 {
			m.seq++
			m.gaps = append(m.gaps, m.seq)
		}
		m.seq++
		seq = m.seq
	}
	t := rules.Turn{Lane: m.lane(), Seq: seq, MaxAttempts: 5, Fence: seq * 3, QueuedAt: lessor.Instant(seq * 7)}
	t.Job.UUID[0], t.Job.UUID[1] = byte(seq), byte(seq>>8)
	m.x.Enqueue(t)
	m.o.queued = append(m.o.queued, t)
}

func (m *machine) randomFilter() *Filter {
	f := &m.filter[m.roll("filter", len(m.filter))]
	if m.roll("copy", 8) == 0 {
		g := *f
		f = &g
	}
	f.Types = [][]string{nil, nil, {"x"}, {"y", "z", "y"}, {"none"}}[m.roll("types", 5)]
	f.MaxUnits = []int{0, 0, 1, 2}[m.roll("max_units", 4)]
	f.Usable = []int{100, 100, 4, 1, 0}[m.roll("usable", 5)]
	f.SkipUnique = m.roll("skip_unique", 3) == 0
	f.Tenant = nil
	if m.roll("one_tenant", 4) == 0 {
		id := m.tenant()
		f.Tenant = &id
	}
	return f
}

func (m *machine) take() {
	f := m.randomFilter()
	want, wantOK := m.o.next(f)
	got, ok := m.x.Next(f)
	if ok != wantOK || got.Turn != want {
		m.fatal("Next(%+v)\n got %v %+v\nwant %v %+v", *f, ok, got.Turn, wantOK, want)
	}
	if !ok {
		return
	}
	if got.Lane != m.o.lanes[want.Lane] {
		m.fatal("lane of pick is %+v, want %+v", got.Lane, m.o.lanes[want.Lane])
	}
	if m.roll("really", 10) == 0 {
		return // asked without a grant
	}
	if t := m.x.Take(got); t != want {
		m.fatal("Take gave %+v, want %+v", t, want)
	}
	m.o.take(want)
	if t := m.x.Take(got); t != (rules.Turn{}) {
		m.fatal("a second Take of one pick gave %+v", t)
	}
}

// takeSeq applies another node's grant, which may be of any queued job.
func (m *machine) takeSeq() {
	if len(m.o.queued) == 0 {
		return
	}
	want := m.o.queued[m.roll("which", len(m.o.queued))]
	if t, ok := m.x.TakeSeq(want.Lane, want.Seq); !ok || t != want {
		m.fatal("TakeSeq gave %v %+v, want %+v", ok, t, want)
	}
	m.o.take(want)
}

// free ends a lease; the job may come back with its old seq.
func (m *machine) free() {
	if len(m.o.held) == 0 {
		return
	}
	i := m.roll("which", len(m.o.held))
	t := m.o.held[i]
	m.o.held = slices.Delete(m.o.held, i, i+1)
	m.x.Free(t.Lane)
	if t.Seq != 0 && m.roll("retried", 2) == 0 {
		m.o.settle()
		t.Attempt++
		m.x.Enqueue(t)
		m.o.queued = append(m.o.queued, t)
	}
}

func (m *machine) hold() {
	id := m.lane()
	m.x.Hold(id)
	m.o.held = append(m.o.held, rules.Turn{Lane: id})
}

func (m *machine) remove() {
	if len(m.o.queued) == 0 {
		return
	}
	i := m.roll("which", len(m.o.queued))
	want := m.o.queued[i]
	m.o.queued = slices.Delete(m.o.queued, i, i+1)
	if t, ok := m.x.Remove(want.Lane, want.Seq); !ok || t != want {
		m.fatal("Remove gave %v %+v, want %+v", ok, t, want)
	}
	if _, ok := m.x.Remove(want.Lane, want.Seq); ok {
		m.fatal("job %d was removed twice", want.Seq)
	}
}

func (m *machine) randomPolicy() Policy {
	return Policy{
		Weight: []int{0, 1, 2, 3, 1_000_000}[m.roll("weight", 5)],
		Cap:    []int{0, 0, 1, 2, 4}[m.roll("cap", 5)],
		Paused: m.roll("paused", 5) == 0,
	}
}

func (m *machine) setTenant() {
	id, p := m.tenant(), m.randomPolicy()
	m.x.SetTenant(id, p)
	m.o.policy[id] = p
}

func (m *machine) setClass() {
	k, p := Owned{m.tenant(), m.pick("class", "", "a", "b")}, m.randomPolicy()
	m.x.SetClass(k.Tenant, k.Name, p)
	m.o.class[k] = p
}

func (m *machine) setDefinition() {
	k, blocked := Owned{m.tenant(), m.pick("definition", "d", "e")}, m.roll("blocked", 2) == 0
	m.x.SetDefinition(k.Tenant, k.Name, blocked)
	m.o.blocked[k] = blocked
}

// check compares what can be seen without a grant, and the heaps.
func (m *machine) check() {
	m.o.settle()
	checkHeaps(m.x, m.fatal)
	counts := m.o.counts()
	if got := m.x.Counts(); !reflect.DeepEqual(got, counts) {
		m.fatal("counts (-oracle +index):\n%s", cmp.Diff(counts, got))
	}
	if m.x.Leases() != counts.Leases || m.x.Leased() != counts.Units || m.x.Depth() != counts.Depth {
		m.fatal("leases %d, units %d, depth %v; want %+v", m.x.Leases(), m.x.Leased(), m.x.Depth(), counts)
	}
	f := m.randomFilter()
	want, wantOK := m.o.next(f)
	if got, ok := m.x.Next(f); ok != wantOK || got.Turn != want {
		m.fatal("Next(%+v)\n got %v %+v\nwant %v %+v", *f, ok, got.Turn, wantOK, want)
	}
	if len(m.o.queued) > 0 {
		m.checkJob(m.o.queued[m.roll("look_at", len(m.o.queued))])
	}
}

// checkJob compares what is known of one queued job.
func (m *machine) checkJob(t rules.Turn) {
	l := m.o.lanes[t.Lane]
	place := 1
	for _, q := range m.o.queued {
		if q.Lane == t.Lane && q.Seq < t.Seq {
			place++
		}
	}
	if got, ok := m.x.Place(t.Lane, t.Seq); !ok || got != place {
		m.fatal("place of %d is %d (%v), want %d", t.Seq, got, ok, place)
	}
	c := m.o.counts()
	b := m.o.blocks(l, &c)
	if got := m.x.Blocked(t.Lane); got != b {
		m.fatal("blocks of lane %d are %+v, want %+v", t.Lane, got, b)
	}
	if got := m.x.Eligible(t.Lane, t.Seq); got == b.Any() {
		m.fatal("job %d is eligible: %v, blocks %+v", t.Seq, got, b)
	}
	if m.x.Eligible(t.Lane, -1) {
		m.fatal("a job that is not queued is eligible")
	}
	got := fmt.Sprint(m.x.TenantRunning(l.Tenant), m.x.ClassRunning(l.Tenant, l.Class), m.x.LockHolders(l.Tenant, "k"))
	if want := fmt.Sprint(b.TenantRunning, b.ClassRunning, c.Locks[Owned{l.Tenant, "k"}]); got != want {
		m.fatal("running of tenant, class, lock: %s, want %s", got, want)
	}
}

// TenantRunning returns how many leases a tenant has.
func (x *Index) TenantRunning(id lessor.TenantID) int {
	if t := x.tenants[id]; t != nil {
		return t.running
	}
	return 0
}

// ClassRunning returns how many leases a class has.
func (x *Index) ClassRunning(id lessor.TenantID, name string) int {
	if c := x.classes[named{x.tenants[id], name}]; c != nil {
		return c.running
	}
	return 0
}

// LockHolders returns how many leases hold a lock key of a tenant: 0 or 1, except while changes of other nodes are
// still to come.
func (x *Index) LockHolders(id lessor.TenantID, key string) int {
	if k := x.locks[named{x.tenants[id], key}]; k != nil {
		return k.holders
	}
	return 0
}
