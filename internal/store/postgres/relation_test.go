package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// stage stores jobs and moves them on as the scheduler does.
type stage struct {
	*testing.T
	store *Store
	made  int
}

// job stores a queued job of a definition, "" for a plain one.
func (s *stage) job(definition string, edits ...func(*rules.Spec)) *rules.Spec {
	s.Helper()
	s.made++
	spec := &rules.Spec{
		ID: lessor.JobID{UUID: uuidAt(1, s.made)}, MaxAttempts: 5, Payload: []byte(`{}`),
		TraceID: "4bf92f3577b34da6a3ce929d0e0e4736",
		Lane: rules.Lane{
			Tenant: lessor.TenantID{UUID: uuidAt(3, 1)}, Type: "mail", Units: 1, Definition: definition,
			LockKey: "key" + strconv.Itoa(s.made),
		},
	}
	for _, edit := range edits {
		edit(spec)
	}
	s.update(func(ctx context.Context, tx scheduler.Tx) error {
		lanes, err := tx.Lanes(ctx, []rules.Lane{spec.Lane})
		if err != nil {
			return err
		}
		if spec.Seq, err = tx.Seqs(ctx, 1); err != nil {
			return err
		}
		spec.LaneID = lanes[0]
		turn := rules.Turn{Job: spec.ID, Lane: spec.LaneID, Seq: spec.Seq, MaxAttempts: 5, Steps: 1, QueuedAt: tx.Now()}
		return errors.Join(tx.Insert(ctx, []*rules.Spec{spec}),
			tx.Move(ctx, []scheduler.Move{{To: rules.InQueue, Turn: turn}}))
	})
	return spec
}

func (s *stage) update(fn func(context.Context, scheduler.Tx) error) {
	s.Helper()
	if err := s.store.Update(s.Context(), func(tx scheduler.Tx) error { return fn(s.Context(), tx) }); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) standing(ctx context.Context, tx scheduler.Tx, id lessor.JobID) *rules.Standing {
	s.Helper()
	all, err := tx.Standings(ctx, []lessor.JobID{id})
	if err != nil || all[id] == nil {
		s.Fatalf("standing of %s: %v", id, err)
	}
	return all[id]
}

// grant leases a job that is queued or waits, and sends a heartbeat if asked to.
func (s *stage) grant(spec *rules.Spec, beats bool) *rules.Held {
	s.Helper()
	s.made++
	var h *rules.Held
	s.update(func(ctx context.Context, tx scheduler.Tx) error {
		st := s.standing(ctx, tx, spec.ID)
		h = rules.Grant(leaseOf(s.store, st.Turn.Seq, s.made), st.Turn, spec, "w1", time.Minute, tx.Now())
		if beats {
			if err := rules.Beat(h, rules.Hand{Holder: h.Holder()}, 0, tx.Now(), tx.Serving()); err != nil {
				return err
			}
		}
		return tx.Move(ctx, []scheduler.Move{{From: st.Place, To: rules.Leased, Turn: st.Turn, Held: h}})
	})
	return h
}

// end ends a lease.
func (s *stage) end(h *rules.Held, o rules.Outcome, final bool) {
	s.Helper()
	s.update(func(ctx context.Context, tx scheduler.Tx) error {
		n, err := rules.Conclude(h, rules.End{Outcome: o, Reason: string(o), Final: final},
			rules.Retries{MaxInterruptions: 20}, tx.Now(), 0)
		if err != nil {
			return err
		}
		return tx.Move(ctx, []scheduler.Move{{
			From: rules.Leased, To: n.Place, Turn: n.Turn, Held: h, Wait: n.Wait, Attempt: n.Attempt, Done: n.Done,
		}})
	})
}

// change moves a job without a lease as a rule decides.
func (s *stage) change(spec *rules.Spec, rule func(*rules.Standing, lessor.Instant) (rules.Change, error)) {
	s.Helper()
	s.update(func(ctx context.Context, tx scheduler.Tx) error {
		st := s.standing(ctx, tx, spec.ID)
		c, err := rule(st, tx.Now())
		if err != nil {
			return err
		}
		turn := c.Next.Turn
		if c.Next.Done != nil {
			turn = st.Turn
		}
		return tx.Move(ctx, []scheduler.Move{{
			From: st.Place, To: c.Next.Place, Turn: turn, Attempt: c.Next.Attempt,
			Done: c.Next.Done,
		}})
	})
}

// makeRuns makes runs of every status, and some jobs that have no run.
func (s *stage) makeRuns(definition string) {
	s.Helper()
	again := func(o rules.Outcome) *rules.Spec {
		spec := s.job(definition)
		s.end(s.grant(spec, true), o, false)
		return spec
	}
	s.job(definition)
	s.grant(s.job(definition), false)
	s.grant(s.job(definition, func(spec *rules.Spec) { spec.TraceID = hex.EncodeToString(spec.ID.UUID[:]) }), true)
	again(rules.OutcomeFailed)
	again(rules.OutcomeReleased)
	s.grant(again(rules.OutcomeExpired), true)
	for _, beats := range []bool{false, true} {
		s.end(s.grant(s.job(definition), beats), rules.OutcomeCompleted, true)
		s.end(s.grant(again(rules.OutcomeFailed), beats), rules.OutcomeCompleted, true)
		s.end(s.grant(s.job(definition), beats), rules.OutcomeFailed, true)
		s.end(s.grant(again(rules.OutcomeReleased), beats), rules.OutcomeExpired, true)
	}
	cancel := func(st *rules.Standing, now lessor.Instant) (rules.Change, error) {
		return rules.Cancel(st, false, "x", now)
	}
	retry := func(st *rules.Standing, now lessor.Instant) (rules.Change, error) { return rules.Retry(st, "x", now) }
	s.change(s.job(definition), cancel)
	s.change(again(rules.OutcomeReleased), cancel)
	spec := again(rules.OutcomeReleased)
	s.end(s.grant(spec, true), rules.OutcomeFailed, true)
	s.change(spec, retry)
	other := again(rules.OutcomeFailed)
	s.end(s.grant(other, true), rules.OutcomeExpired, true)
	s.change(other, retry)
	s.end(s.grant(other, true), rules.OutcomeCompleted, true)
	s.change(again(rules.OutcomeReleased), func(st *rules.Standing, now lessor.Instant) (rules.Change, error) {
		return rules.Reject(st.Turn, &lessor.Error{Code: lessor.CodeInvalidValue, Detail: "no"}, now), nil
	})
}

// TestRunRelationAgreesWithTheRules compares kernel_job_run with rules.RunOf, for claimed jobs in every place, and with
// rules.CircuitRun.
func TestRunRelationAgreesWithTheRules(t *testing.T) {
	url := pool.Database(t)
	s := &stage{T: t, store: openAt(t, patient(url))}
	s.makeRuns("")
	s.makeRuns("nightly")
	circuit := rules.TickRow{
		Definition: "nightly", Tenant: lessor.TenantID{UUID: uuidAt(3, 1)}, At: 1_760_000_000_123,
		Outcome: lessor.TickCircuitOpen,
		Run:     lessor.JobID{UUID: uuidAt(4, 1)},
	}
	fired := circuit
	fired.At, fired.Outcome, fired.Run = circuit.At+1, lessor.TickFired, lessor.JobID{UUID: uuidAt(1, 1)}
	want := map[lessor.JobID]lessor.Run{
		circuit.Run: rules.CircuitRun(&circuit, hex.EncodeToString(circuit.Run.UUID[:])),
	}
	s.update(func(ctx context.Context, tx scheduler.Tx) error {
		return tx.SaveTicks(ctx, []rules.TickRow{circuit, fired})
	})
	statuses := map[lessor.RunStatus]int{}
	if err := s.store.View(t.Context(), func(v scheduler.View) error {
		page, err := v.List(t.Context(), scheduler.ListQuery{Limit: 1000})
		for _, st := range page.Standings {
			if run, _ := rules.RunOf(st); run.StartedAt != 0 {
				want[run.RunID] = run
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	got := readRuns(t, url)
	for _, run := range got {
		statuses[run.Status]++
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("kernel_job_run differs from the rules (-rules +relation):\n%s", d)
	}
	counts := map[lessor.RunStatus]int{
		lessor.RunClaimed: 2, lessor.RunRunning: 4, lessor.RunRetrying: 6, lessor.RunSuccess: 10, lessor.RunFailed: 12,
		lessor.RunCircuitOpen: 1,
	}
	if d := cmp.Diff(counts, statuses); d != "" {
		t.Errorf("runs by status (-want +got):\n%s", d)
	}
}

// readRuns reads kernel_job_run.
func readRuns(t *testing.T, url string) map[lessor.JobID]lessor.Run {
	t.Helper()
	runs := map[lessor.JobID]lessor.Run{}
	millis := func(column string) string {
		return "coalesce(round(extract(epoch from " + column + ") * 1000), 0)::bigint"
	}
	readAll(t, url, "select run_id, job_id, tenant_id, status, attempts, "+millis("started_at")+", "+millis("ended_at")+
		", trace_id, coalesce(last_error_ref, '') from kernel_job_run", func(values [][]byte) {
		run := lessor.Run{
			JobID: string(values[1]), Status: lessor.RunStatus(values[3]), TraceID: string(values[7]),
			LastErrorRef: string(values[8]),
		}
		var errs [5]error
		run.RunID.UUID, errs[0] = lessor.ParseUUID(string(values[0]))
		run.TenantID.UUID, errs[1] = lessor.ParseUUID(string(values[2]))
		run.Attempts, errs[2] = strconv.Atoi(string(values[4]))
		started, bad := strconv.ParseInt(string(values[5]), 10, 64)
		ended, worse := strconv.ParseInt(string(values[6]), 10, 64)
		errs[3], errs[4] = bad, worse
		run.StartedAt, run.EndedAt = lessor.Instant(started), lessor.Instant(ended)
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatal(err)
		}
		if _, twice := runs[run.RunID]; twice {
			t.Errorf("kernel_job_run has run %s twice, want once", run.RunID)
		}
		runs[run.RunID] = run
	})
	return runs
}
