package storetest

import (
	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

func (b *bed) purge(before lessor.Instant, limit int) (n int) {
	b.Helper()
	b.update(func(tx scheduler.Tx) (err error) {
		n, err = tx.Purge(b.Context(), before, limit)
		return err
	})
	return n
}

// endedAt completes a job at an instant. The job has a row in every table that can hold one.
func (b *bed) endedAt(at lessor.Instant, key string) *rules.Spec {
	b.Helper()
	s := b.queued(func(s *rules.Spec) { s.IdempotencyKey = key })
	b.end(b.grant(s, "w1"), released)
	h := b.grant(s, "w1")
	b.update(func(tx scheduler.Tx) error {
		m, err := endMove(h, completed, at)
		if err != nil {
			return err
		}
		if err := tx.Note(b.Context(), []rules.Note{{Job: s.ID, Reason: "noted"}}); err != nil {
			return err
		}
		if err := tx.SaveReports(b.Context(), []rules.Report{{Job: s.ID, Message: new("m"), At: 1}}); err != nil {
			return err
		}
		if err := tx.AppendEntries(b.Context(), []rules.Entry{newEntry(s, 1)}); err != nil {
			return err
		}
		return tx.Move(b.Context(), []scheduler.Move{m})
	})
	return s
}

func purgeLeavesOthers(b *bed) {
	var old []*rules.Spec
	for i := range 5 {
		old = append(old, b.endedAt(lessor.Instant(100+i), ""))
	}
	stays := []lessor.JobID{
		b.endedAt(200, "").ID, b.queued().ID, b.queued(later).ID, b.grant(b.queued(), "w1").Turn.Job,
	}
	before := b.everything(stays...)
	for _, step := range []struct {
		before lessor.Instant
		limit  int
		want   int
	}{{100, 10, 0}, {200, 0, 0}, {200, 2, 2}, {200, 10, 3}, {200, 10, 0}} {
		if got := b.purge(step.before, step.limit); got != step.want {
			b.Fatalf("purge before %d, at most %d: %d, want %d", step.before, step.limit, got, step.want)
		}
		if step.want == 2 {
			for i, s := range old {
				if gone := b.standing(s.ID) == nil; gone != (i < 2) {
					b.Fatalf("after the two oldest were purged, number %d is gone: %v", i, gone)
				}
			}
		}
	}
	b.same("what stays", b.everything(stays...), before)
	for _, s := range old {
		b.view(func(v scheduler.View) error {
			reports, err := v.Reports(b.Context(), []lessor.JobID{s.ID})
			if len(reports) != 0 || b.history(s.ID) != nil || b.journal(s.ID, 0, 1) != nil {
				b.Fatal("something of a purged job is left")
			}
			return err
		})
	}
	b.onePlaceEach()
}

func purgeFreesKey(b *bed) {
	s := b.endedAt(100, "key-1")
	keeps := b.endedAt(300, "key-2")
	var ends map[lessor.LeaseID]scheduler.LeaseEnd
	lease := b.standing(s.ID).Done.Attempt.Lease
	b.purge(200, 10)
	b.view(func(v scheduler.View) (err error) {
		ends, err = v.LeaseEnds(b.Context(), []lessor.LeaseID{lease})
		return err
	})
	b.same("the end of a purged job's lease", ends, nil)
	again := b.queued(func(d *rules.Spec) { d.IdempotencyKey = "key-1" })
	b.update(func(tx scheduler.Tx) error {
		rivals := []scheduler.JobKey{
			{Key: scheduler.Key{Tenant: acme, Key: "key-1"}}, {Key: scheduler.Key{Tenant: acme, Key: "key-2"}},
		}
		got, err := tx.TakeKeys(b.Context(), rivals)
		b.same("holders", got, map[scheduler.Key]scheduler.KeyHolder{
			{Tenant: acme, Key: "key-1"}: {Job: again.ID}, {Tenant: acme, Key: "key-2"}: {Job: keeps.ID},
		})
		return err
	})
}

func stripForgetsWhatIsLarge(b *bed) {
	first, twin := b.endedAt(100, "key-1"), b.endedAt(100, "")
	young, waits := b.endedAt(200, "key-2"), b.queued()
	untouched := b.everything(young.ID, waits.ID)
	record := rules.Record(b.history(first.ID))
	strip := func(limit int) (n int) {
		b.update(func(tx scheduler.Tx) (err error) {
			n, err = tx.Strip(b.Context(), 150, limit)
			return err
		})
		return n
	}
	for i, want := range []int{1, 1, 0} {
		if got := strip(1); got != want {
			b.Fatalf("page %d of one: %d stripped, want %d", i+1, got, want)
		}
	}
	for _, s := range []*rules.Spec{first, twin} {
		st := b.standing(s.ID)
		if st.Spec.Payload != nil || st.Done.Result != nil || st.Report != nil || b.journal(s.ID, 0, 1) != nil {
			b.Fatalf("payload %q, result %q, report %v are left, want none", st.Spec.Payload, st.Done.Result, st.Report)
		}
	}
	b.same("the record", rules.Record(b.history(first.ID)), record)
	b.same("what is younger or has not ended", b.everything(young.ID, waits.ID), untouched)
	rival := b.draft(func(s *rules.Spec) { s.IdempotencyKey = "key-1" })
	b.update(func(tx scheduler.Tx) error {
		got, err := tx.TakeKeys(b.Context(), []scheduler.JobKey{jobKey(rival)})
		b.same("holder of a stripped job's key", got[jobKey(rival).Key], jobKey(rival).KeyHolder)
		return err
	})
}

// stripGoesBackWithTheClock: jobs that end after the clock was set back are stripped, although the last that was
// stripped ended later. The clock is not that of the store here.
func stripGoesBackWithTheClock(b *bed) {
	strip := func(before lessor.Instant, want int) {
		b.Helper()
		b.update(func(tx scheduler.Tx) error {
			n, err := tx.Strip(b.Context(), before, 10)
			if n != want {
				b.Errorf("%d jobs were stripped of those that ended before %d, want %d", n, before, want)
			}
			return err
		})
	}
	b.endedAt(5000, "")
	strip(5001, 1)
	strip(150, 0)
	s := b.endedAt(200, "")
	strip(200, 0)
	strip(201, 1)
	strip(5000, 0)
	if st := b.standing(s.ID); st.Spec.Payload != nil {
		b.Errorf("the payload %q is left, want none", st.Spec.Payload)
	}
}

// purgeSchedules removes ticks, cleared alerts and audit entries page by page, the oldest first.
func purgeSchedules(b *bed) {
	// All of it stays but its tick, of 10, and its audit entry, of 4.
	b.update(func(tx scheduler.Tx) error { return b.fillSchedules(tx, "stays") })
	for i := range 5 {
		at := lessor.Instant(100 + i)
		cleared := b.alert(lessor.AlertHung, "lease", acme)
		cleared.ClearedAt = at
		b.saveAlerts(cleared)
		b.saveTicks(rules.TickRow{Definition: "stays", Tenant: acme, At: at, Outcome: lessor.TickFired})
		b.update(func(tx scheduler.Tx) error {
			return tx.SaveAudit(b.Context(), []lessor.Audited{{ID: lessor.AuditID{UUID: b.uuid()}, At: at, Actor: "a"}})
		})
	}
	before := b.scheduleState("stays")
	for _, step := range []struct {
		before lessor.Instant
		limit  int
		want   int
	}{{4, 10, 0}, {104, 0, 0}, {11, 10, 2}, {104, 3, 9}, {104, 3, 3}, {104, 3, 0}, {105, 10, 3}} {
		var got int
		b.update(func(tx scheduler.Tx) (err error) {
			got, err = tx.PurgeRecords(b.Context(), step.before, step.limit)
			return err
		})
		if got != step.want {
			b.Fatalf("purge before %d, at most %d each: %d, want %d", step.before, step.limit, got, step.want)
		}
		if step.limit == 3 && got == 9 {
			state := b.scheduleState("stays")
			if state.Ticks["stays"][0].At != 103 || state.Alerts[1].ClearedAt != 103 || state.Audit[1].At != 103 {
				b.Fatalf("the oldest did not go first: %+v", state)
			}
		}
	}
	want := before
	want.Ticks, want.Audit, want.Alerts = map[string][]rules.TickRow{"stays": nil}, nil, before.Alerts[5:]
	b.same("what stays", b.scheduleState("stays"), want)
}
