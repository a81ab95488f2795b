package storetest

import (
	"context"
	"encoding/binary"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// bed is a store under test, with the helpers of the tests.
type bed struct {
	*testing.T
	scheduler.Store
	open  func() scheduler.Store
	count uint64
}

// asStored compares what was saved with what is read. Only TakeKeys returns a spec's body hash, a store may have no
// references to rows, and nil is as good as empty.
var asStored = cmp.Options{
	cmpopts.EquateEmpty(), cmpopts.IgnoreFields(rules.Spec{}, "BodyHash", "RowRef"),
	cmpopts.IgnoreFields(rules.Turn{}, "RowRef"),
}

// same fails the test unless got equals want; nil stands for an empty slice or map.
func (b *bed) same(what string, got, want any) {
	b.Helper()
	if want == nil {
		if n := reflect.ValueOf(got).Len(); n != 0 {
			b.Fatalf("%s: %d where none is wanted: %v", what, n, got)
		}
		return
	}
	if d := cmp.Diff(want, got, asStored); d != "" {
		b.Fatalf("%s: not as wanted (-want +got):\n%s", what, d)
	}
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// wants fails the test unless err is a kind of error.
func (b *bed) wants(err, kind error) {
	b.Helper()
	if !errors.Is(err, kind) {
		b.Fatalf("got error %v, want one that is %q", err, kind)
	}
}

func (b *bed) reopen() {
	b.Helper()
	b.must(b.Close())
	b.Store = b.open()
}

func (b *bed) update(fn func(scheduler.Tx) error) {
	b.Helper()
	b.must(b.Update(b.Context(), fn))
}

func (b *bed) view(fn func(scheduler.View) error) {
	b.Helper()
	b.must(b.View(b.Context(), fn))
}

// uuid returns ids in ascending order, like those of version 7.
func (b *bed) uuid() (u lessor.UUID) {
	b.count++
	binary.BigEndian.PutUint64(u[:], 0x0199_0000_0000_7000)
	binary.BigEndian.PutUint64(u[8:], 0x8000_0000_0000_0000+b.count)
	return u
}

func (b *bed) jobID() lessor.JobID { return lessor.JobID{UUID: b.uuid()} }

// leaseID returns an id that no lease has.
func (b *bed) leaseID() lessor.LeaseID { return b.leaseOf(1) }

// leaseOf returns the id of a lease of the job with this seq.
func (b *bed) leaseOf(seq int64) lessor.LeaseID {
	b.count++
	var random [10]byte
	binary.LittleEndian.PutUint64(random[:], b.count)
	return b.Seal().LeaseID(seq, random)
}

var acme, globex = tenant(1), tenant(2)

func tenant(n byte) lessor.TenantID { return lessor.TenantID{UUID: lessor.UUID{15: n}} }

// draft returns a job that is not stored; edits change it.
func (b *bed) draft(edits ...func(*rules.Spec)) *rules.Spec {
	s := &rules.Spec{
		ID:      b.jobID(),
		Lane:    rules.Lane{Tenant: acme, Class: "default", Priority: lessor.Normal, Type: "mail", Units: 1},
		Payload: []byte(`{"to":"a@example.org"}`), MaxAttempts: 5, BackoffFirst: time.Second,
		BackoffMax: 5 * time.Minute,
		TraceID:    "4bf92f3577b34da6a3ce929d0e0e4736", Actor: "tester", CreatedAt: 1_700_000_000_000,
	}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

// insert gives the jobs their lanes and places in line, and writes them.
func insert(ctx context.Context, tx scheduler.Tx, specs ...*rules.Spec) error {
	lanes := make([]rules.Lane, len(specs))
	for i, s := range specs {
		lanes[i] = s.Lane
	}
	ids, err := tx.Lanes(ctx, lanes)
	if err != nil {
		return err
	}
	first, err := tx.Seqs(ctx, len(specs))
	if err != nil {
		return err
	}
	var wanted []scheduler.JobKey
	for i, s := range specs {
		s.LaneID, s.Seq = ids[i], first+int64(i)
		if s.IdempotencyKey != "" {
			wanted = append(wanted, jobKey(s))
		}
	}
	if _, err := tx.TakeKeys(ctx, wanted); err != nil {
		return err
	}
	return tx.Insert(ctx, specs)
}

// jobKey is a job with its idempotency key.
func jobKey(s *rules.Spec) scheduler.JobKey {
	return scheduler.JobKey{
		Key:       scheduler.Key{Tenant: s.Lane.Tenant, Key: s.IdempotencyKey},
		KeyHolder: scheduler.KeyHolder{Job: s.ID, BodyHash: s.BodyHash},
	}
}

// firstTurn is a job's turn when it was submitted. Every second queued job has a reference to its row, so that all
// tests cover both kinds of rows; see cohorts.
func firstTurn(s *rules.Spec, now lessor.Instant) rules.Turn {
	t := rules.Turn{Job: s.ID, Lane: s.LaneID, Seq: s.Seq, MaxAttempts: s.MaxAttempts, Steps: 1, QueuedAt: now}
	if s.RunAt == 0 && s.Seq%2 == 0 {
		t.RowRef = s.Seq
	}
	return t
}

// enqueue is the move of a new job.
func enqueue(s *rules.Spec, now lessor.Instant) scheduler.Move {
	if s.RunAt > now {
		return scheduler.Move{
			From: rules.Nowhere, To: rules.Delayed, Turn: firstTurn(s, now), Wait: rules.Wait{
				Until: s.RunAt, State: lessor.Queued,
			},
		}
	}
	return scheduler.Move{From: rules.Nowhere, To: rules.InQueue, Turn: firstTurn(s, now)}
}

// submit stores jobs and puts them in line.
func (b *bed) submit(specs ...*rules.Spec) {
	b.Helper()
	b.update(func(tx scheduler.Tx) error {
		if err := insert(b.Context(), tx, specs...); err != nil {
			return err
		}
		moves := make([]scheduler.Move, len(specs))
		for i, s := range specs {
			moves[i] = enqueue(s, tx.Now())
		}
		return tx.Move(b.Context(), moves)
	})
}

// queued stores one job in line.
func (b *bed) queued(edits ...func(*rules.Spec)) *rules.Spec {
	b.Helper()
	s := b.draft(edits...)
	b.submit(s)
	return s
}

// grantMove is the move of a queued job to worker.
func (b *bed) grantMove(s *rules.Spec, t rules.Turn, worker string, now lessor.Instant) scheduler.Move {
	h := rules.Grant(b.leaseOf(t.Seq), t, s, worker, time.Minute, now)
	return scheduler.Move{From: rules.InQueue, To: rules.Leased, Turn: t, Held: h}
}

// grant leases a queued job to worker; edits change the lease.
func (b *bed) grant(s *rules.Spec, worker string, edits ...func(*rules.Held)) *rules.Held {
	b.Helper()
	var h *rules.Held
	b.update(func(tx scheduler.Tx) error {
		st, err := tx.Standings(b.Context(), []lessor.JobID{s.ID})
		if err != nil {
			return err
		}
		m := b.grantMove(s, st[s.ID].Turn, worker, tx.Now())
		h = m.Held
		for _, edit := range edits {
			edit(h)
		}
		return tx.Move(b.Context(), []scheduler.Move{m})
	})
	return h
}

// retries are the limits of all attempts in these tests.
var retries = rules.Retries{BackoffFirst: time.Second, BackoffMax: time.Minute, MaxInterruptions: 20}

// endMove is the move of a job whose lease ends by e.
func endMove(h *rules.Held, e rules.End, now lessor.Instant) (scheduler.Move, error) {
	n, err := rules.Conclude(h, e, retries, now, 0.5)
	return scheduler.Move{
		From: rules.Leased, To: n.Place, Turn: n.Turn, Held: h, Wait: n.Wait, Attempt: n.Attempt, Done: n.Done,
	}, err
}

// end ends a lease, and returns the move that it made.
func (b *bed) end(h *rules.Held, e rules.End) (m scheduler.Move) {
	b.Helper()
	b.update(func(tx scheduler.Tx) (err error) {
		if m, err = endMove(h, e, tx.Now()); err != nil {
			return err
		}
		return tx.Move(b.Context(), []scheduler.Move{m})
	})
	return m
}

// The ends of attempts.
var (
	completed = rules.End{
		Outcome: rules.OutcomeCompleted, Said: rules.SaidCompleted, Reason: "completed", Actor: "w1",
		Result: []byte(`{"ok":1}`),
	}
	failed = rules.End{
		Outcome: rules.OutcomeFailed, Said: rules.SaidFailed, Reason: "failed", Actor: "w1", Error: "no route to host",
	}
	fatal = rules.End{
		Outcome: rules.OutcomeFailed, Said: rules.SaidFailed, Reason: "failed", Actor: "w1", Error: "bad address",
		Final: true,
	}
	expired = rules.Lapse(rules.OutcomeExpired)
	asked   = rules.End{
		Outcome: rules.OutcomeWaiting, Said: rules.SaidWaiting, Reason: "asked", Actor: "w1", Delay: time.Hour,
		Question: &lessor.Question{Text: "Deploy?", Choices: []string{"yes", "no"}},
	}
	released = rules.End{Outcome: rules.OutcomeReleased, Said: rules.SaidReleased, Reason: "released", Actor: "w1"}
)

// standing reads the standing of a job; nil if there is no such job.
func (b *bed) standing(id lessor.JobID) (s *rules.Standing) {
	b.Helper()
	b.view(func(v scheduler.View) error {
		all, err := v.Standings(b.Context(), []lessor.JobID{id})
		s = all[id]
		return err
	})
	return s
}

// requestOf names a request of a worker without a token.
func requestOf(worker, id string) scheduler.RequestRef {
	return scheduler.RequestRef{Holder: rules.Holder{Worker: worker}, RequestID: id}
}

func heldOf(list []scheduler.ListedLease) (held []*rules.Held) {
	for _, l := range list {
		held = append(held, l.Held)
	}
	return held
}
