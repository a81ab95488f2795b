package scheduler

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"lessor"
	"lessor/internal/rules"
)

const noon = lessor.Instant(1_700_000_000_000)

// ask notes a request of a worker of a tenant (0 = of none) for types.
func (w *workers) ask(tenant byte, worker string, at lessor.Instant, types ...string) {
	c := Caller{}
	if tenant != 0 {
		c.Tenant = &lessor.TenantID{UUID: lessor.UUID{15: tenant}}
	}
	w.asked(&c, &rules.Ask{Worker: worker, Types: types}, strings.Join(types, "\x00"), at)
}

func (w *workers) asksOf(tenant byte, typ string, at lessor.Instant) bool {
	return w.asks(typ, lessor.TenantID{UUID: lessor.UUID{15: tenant}}, at)
}

func (w *workers) known(at lessor.Instant) map[rules.Holder][]string {
	all := map[rules.Holder][]string{}
	w.each(at, func(k rules.Holder, s *seen[seenWorker]) { all[k] = s.is.asksFor(at) })
	return all
}

// TestMadeUpWorkersHarmTheirTenantAlone has one tenant's token make up 20,000 names and 200 long types for each.
func TestMadeUpWorkersHarmTheirTenantAlone(t *testing.T) {
	var before, after runtime.MemStats
	w := &workers{}
	w.ask(2, "theirs", noon, "mail")
	types := make([]string, 200)
	for i := range types {
		types[i] = fmt.Sprintf("%0100d", i)
	}
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 20_000 {
		own := slices.Clone(types)
		own[0] = fmt.Sprintf("%0100d", 1_000+i)
		w.ask(1, fmt.Sprintf("%0190d", i), noon+1, own...)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 20<<20 {
		t.Errorf("they take %d MB, want less than 20", grown>>20)
	}
	if !w.asksOf(2, "mail", noon+2) || w.asksOf(2, "other", noon+2) {
		t.Error("what the other tenant's worker asks for is not known any more")
	}
	known := w.known(noon + 2)
	theirs := rules.Holder{Space: lessor.TenantID{UUID: lessor.UUID{15: 2}}, Worker: "theirs"}
	if got := known[theirs]; !slices.Equal(got, []string{"mail"}) {
		t.Errorf("the other tenant's worker asks for %q, want mail", got)
	}
	if len(known) != maxWorkersOf+1 || w.names != maxWorkersOf+1 || w.types != maxTypesOf+1 {
		t.Errorf("%d workers are known, %d counted, with %d types", len(known), w.names, w.types)
	}
	for k, types := range known {
		if len(types) > maxTypesEach {
			t.Fatalf("%d types are shown of %v", len(types), k)
		}
	}
	if !w.asksOf(1, "anything", noon+2) {
		t.Error("a tenant that asks for more types than are kept is said not to ask for one")
	}
	notes := w.notes()
	if len(notes) > maxNotes+2 {
		t.Errorf("the notes for other nodes have %d bytes", len(notes))
	}
	if !strings.Contains(string(notes), "theirs") {
		t.Error("the notes for other nodes lack the other tenant's worker")
	}
}

// TestLargestTenantMakesRoom: when all tenants together have too many workers, those with the most lose some.
func TestLargestTenantMakesRoom(t *testing.T) {
	w := &workers{}
	for tenant := range byte(5) {
		for i := range maxWorkersOf {
			w.ask(tenant+1, fmt.Sprint("w", i), noon, fmt.Sprint("t", i%500))
		}
	}
	w.ask(100, "small", noon, "mail")
	known := w.known(noon)
	if len(known) != maxWorkers || w.names != maxWorkers {
		t.Errorf("%d workers are known, want %d", len(known), maxWorkers)
	}
	if _, ok := known[rules.Holder{Space: lessor.TenantID{UUID: lessor.UUID{15: 100}}, Worker: "small"}]; !ok {
		t.Error("a tenant of one worker lost it to those of thousands")
	}
	w.ask(100, "small", noon.Add(workerLife+time.Second), "mail")
	w.ask(101, "later", noon.Add(workerLife+time.Second), "mail")
	if len(w.own) != 2 || w.names != 2 || w.types != 2 {
		t.Errorf("after five minutes: %d tenants, %d workers, %d types; want two of each", len(w.own), w.names, w.types)
	}
}

// TestWorkerThatAsksInTurnsAsksForBoth: for one type, then another, as a worker with several handlers does.
func TestWorkerThatAsksInTurnsAsksForBoth(t *testing.T) {
	w := &workers{}
	at := noon
	for range 10 {
		w.ask(1, "w1", at, "a")
		w.ask(1, "w1", at+1, "b")
		at = at.Add(20 * time.Second)
	}
	if !w.asksOf(1, "a", at) || !w.asksOf(1, "b", at) || w.asksOf(1, "c", at) || w.asksOf(2, "a", at) {
		t.Error("it is not known as one that asks for both, and for its tenant alone")
	}
	k := rules.Holder{Space: lessor.TenantID{UUID: lessor.UUID{15: 1}}, Worker: "w1"}
	if got := w.known(at)[k]; !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("it is shown to ask for %q, want a and b", got)
	}
	later := at.Add(workerLife)
	w.ask(1, "w1", later, "b")
	if got := w.known(later)[k]; !slices.Equal(got, []string{"b"}) || w.asksOf(1, "a", later) {
		t.Errorf("five minutes later it is shown to ask for %q, want b", got)
	}
	w.ask(1, "w1", later)
	if got := w.known(later)[k]; len(got) != 0 || !w.asksOf(1, "c", later) {
		t.Errorf("a worker that asks for every type is shown to ask for %q", got)
	}
	w = &workers{}
	w.beat(&Caller{}, &rules.Held{Worker: "w1"}, noon)
	if w.asksOf(0, "a", noon) {
		t.Error("a worker that only sends heartbeats counts as one that asks for work")
	}
}

// TestNodesExchangeTheirWorkers: in the present form, and in that of the release before, which has no types of
// a tenant.
func TestNodesExchangeTheirWorkers(t *testing.T) {
	sender := &workers{}
	sender.ask(1, "w1", noon, "a", "b")
	sender.ask(0, "w2", noon, "c")
	sender.beat(&Caller{}, &rules.Held{Worker: "w3"}, noon)
	sender.noteStarving(starvingNote{Lane: 1, Seq: 1, Since: noon, AskedAt: noon}) // it names no worker and no type
	for name, raw := range map[string]string{
		"now": string(sender.notes()),
		"before": `[{"worker":"w1","tenant":"00000000-0000-0000-0000-000000000001",` +
			`"at":"2023-11-14T22:13:20.000Z","types":["a","b"],"agent":""},` +
			`{"worker":"w2","at":"2023-11-14T22:13:20.000Z","types":["c"],"agent":""}]`,
	} {
		w := &workers{others: map[lessor.TenantID]*tenantWorkers{}}
		var list []workerNote
		if err := json.Unmarshal([]byte(raw), &list); err != nil {
			t.Fatal(err)
		}
		addNotes(w.others, list)
		if !w.asksOf(1, "a", noon) || !w.asksOf(1, "c", noon) || w.asksOf(2, "a", noon) || !w.asksOf(2, "c", noon) ||
			w.asksOf(1, "d", noon) {
			t.Errorf("%s: the workers ask for other types than the notes say", name)
		}
		first := rules.Holder{Space: lessor.TenantID{UUID: lessor.UUID{15: 1}}, Worker: "w1"}
		if got := w.known(noon)[first]; !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("%s: the worker asks for %q", name, got)
		}
		w.ask(1, "w1", noon+1, "x")
		if got := w.known(noon + 1); len(got) != map[string]int{"now": 3, "before": 2}[name] {
			t.Errorf("%s: %d workers, want each once", name, len(got))
		}
	}
}

// TestRepeatableGrantsAreNotGivenBack: the client of a request is gone, and may have repeated it on another node.
func TestRepeatableGrantsAreNotGivenBack(t *testing.T) {
	s := New(nil, Config{})
	r := &requestCall{grants: []lessor.Grant{{}}, ask: rules.Ask{RequestID: "r1"}}
	s.giveBack(r)
	if n := len(s.calls.Close()); n != 0 {
		t.Errorf("%d calls to release what the worker asks for again", n)
	}
	s = New(nil, Config{})
	r.ask.RequestID = ""
	s.giveBack(r)
	calls := s.calls.Close()
	if len(calls) != 1 {
		t.Fatalf("%d calls to release what nobody has, want 1", len(calls))
	}
	if o := calls[0].(*endCall); !o.ends[0].end.Uncounted {
		t.Error("a grant that reached nobody counts as an interruption of its job")
	}
}
