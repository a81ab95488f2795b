package postgres

import (
	"context"
	"slices"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

// requestParams finds the leases that requests were granted.
func requestParams(columns string) string {
	return "(" + wire.Unnest("utt", "space, worker, request_id") + ") q cross join lateral" +
		" (select " + columns + " from lease where worker = q.worker and request_id = q.request_id" +
		" and case when bound then tenant else '00000000-0000-0000-0000-000000000000' end = q.space offset 0) l"
}

var (
	requested = wire.SQL("select " + row.Of("l", leaseColumns) + " from " + requestParams(leaseColumns) +
		" order by l.issued_at, l.seq")
	// neverGranted checks that requests were granted no lease.
	neverGranted = wire.SQL("select 1 / (case when exists (select from " + requestParams("") + ") then 0 else 1 end)")
)

// Requested implements scheduler.Tx, in the order of the grants and, within one instant, of the jobs' seqs. A guarded
// transaction does not wait for the answer if this node has granted none of the requests: it cannot commit if another
// node has, or this node before it was started again.
func (t *tx) Requested(_ context.Context, refs []scheduler.RequestRef) (map[scheduler.RequestRef][]*rules.Held, error) {
	found := make(map[scheduler.RequestRef][]*rules.Held)
	if len(refs) == 0 || t.err != nil {
		return found, t.err
	}
	r := t.scratch.Reset()
	asked := make(map[scheduler.RequestRef]bool, len(refs))
	for _, ref := range refs {
		if asked[ref] {
			continue
		}
		asked[ref] = true
		r.Next()
		r.ID(ref.Space.UUID)
		r.Text(ref.Worker)
		r.Text(ref.RequestID)
	}
	if t.guard && !slices.ContainsFunc(refs, t.store.granted) {
		t.add("look for repeated requests", wire.Step{Stmt: neverGranted, Guard: errOthers}, r.Params()...)
		return found, t.err
	}
	err := t.query("read requested leases", requested, func(r *wire.Row) error {
		h := readLease(r)
		ref := requestOf(h)
		found[ref] = append(found[ref], h)
		return nil
	}, r.Params()...)
	for ref := range found {
		t.store.requests.noteRepeated(ref)
	}
	return found, err
}

func requestOf(h *rules.Held) scheduler.RequestRef {
	return scheduler.RequestRef{Holder: h.Holder(), RequestID: h.RequestID}
}

// requests are the lease requests that are known to have been granted leases.
type requests struct {
	live     map[scheduler.RequestRef]int      // how many of the known leases they were granted
	repeated map[scheduler.RequestRef]struct{} // they were repeated, and may be again
}

func newRequests() requests {
	return requests{live: map[scheduler.RequestRef]int{}, repeated: map[scheduler.RequestRef]struct{}{}}
}

// maxRepeated bounds the remembered requests that were repeated.
const maxRepeated = 10_000

func (r *requests) noteRepeated(ref scheduler.RequestRef) {
	if len(r.repeated) >= maxRepeated {
		clear(r.repeated)
	}
	r.repeated[ref] = struct{}{}
}

// count counts a lease that is known, or with -1 one that is not any more.
func (r *requests) count(h *rules.Held, by int) {
	if h.RequestID == "" {
		return
	}
	ref := requestOf(h)
	if r.live[ref] += by; r.live[ref] == 0 {
		delete(r.live, ref)
	}
}

// granted reports whether a request may have been granted something that is alive or on its way, as far as this node
// knows.
func (s *Store) granted(ref scheduler.RequestRef) bool {
	_, repeated := s.requests.repeated[ref]
	return repeated || s.requests.live[ref] > 0 || slices.ContainsFunc(s.flights, func(f *flight) bool {
		_, ok := f.tx.requests[ref]
		return ok
	})
}

// knowLease keeps a lease among those that are known.
func (s *Store) knowLease(h *rules.Held, epoch int64) {
	if h.RequestID != "" {
		if _, known := s.leases[h.ID]; !known {
			s.requests.count(h, 1)
		}
	}
	s.leases[h.ID] = knownLease{h, epoch}
}

// forgetLease removes a lease from those that are known. It looks at the lease only if some lease was granted to a
// request with an id: the lease has been out of the processor's caches for long.
func (s *Store) forgetLease(id lessor.LeaseID) {
	if len(s.requests.live) > 0 {
		if k, known := s.leases[id]; known {
			s.requests.count(k.held, -1)
		}
	}
	delete(s.leases, id)
}
