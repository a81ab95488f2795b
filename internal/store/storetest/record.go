package storetest

import (
	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

func (b *bed) history(id lessor.JobID) (h *rules.History) {
	b.Helper()
	return b.histories(id)[id]
}

func (b *bed) histories(ids ...lessor.JobID) (all map[lessor.JobID]*rules.History) {
	b.Helper()
	b.view(func(v scheduler.View) (err error) {
		all, err = v.Histories(b.Context(), ids)
		return err
	})
	return all
}

func historyInOrder(b *bed) {
	s, other := b.queued(), b.queued()
	var attempts []rules.Attempt
	for _, e := range []rules.End{released, failed, expired} {
		attempts = append(attempts, *b.end(b.grant(s, "w1", full), e).Attempt)
		b.end(b.grant(other, "w2"), released)
		if b.standing(s.ID).Place == rules.Delayed {
			b.promote(s.ID)
		}
	}
	h := b.grant(s, "w3", full)
	notes := []rules.Note{
		{
			Job: s.ID, Fence: h.Turn.Fence, Held: true, At: 9, From: lessor.Leased, To: lessor.Leased, Actor: "a",
			Reason: "z", Lease: h.ID, Attempt: 3,
		},
		{Job: s.ID, Fence: 1, At: 5, From: lessor.Queued, To: lessor.Cancelled, Actor: "b", Reason: "y", QueuedAt: 4},
		{Job: s.ID, At: 7},
	}
	b.update(func(tx scheduler.Tx) error {
		return tx.Note(b.Context(), []rules.Note{notes[0], {Job: other.ID}, notes[1]})
	})
	b.update(func(tx scheduler.Tx) error { return tx.Note(b.Context(), notes[2:]) })
	got := b.history(s.ID)
	b.same("attempts", got.Attempts, attempts)
	b.same("notes", got.Notes, notes)
	b.same("standing", &got.Standing, b.standing(s.ID))
	b.same("histories at once", b.histories(s.ID, b.jobID(), other.ID), map[lessor.JobID]*rules.History{
		s.ID: got, other.ID: b.history(other.ID), // none of the unknown job
	})
}

// replaysToTheState checks at each commit that the record ends in the job's state, and only grows.
func replaysToTheState(b *bed) {
	s := b.queued()
	var last []lessor.Event
	check := func() {
		b.Helper()
		h := b.history(s.ID)
		record := rules.Record(h)
		if got := rules.Replay(record); got != h.Standing.State() {
			b.Fatalf("the record ends %s and the job is %s", got, h.Standing.State())
		}
		b.same("the beginning of the record", record[:len(last)], last)
		last = record
	}
	check()
	for _, e := range []rules.End{released, failed, asked, expired, fatal, completed} {
		h := b.grant(s, "w1", full)
		check()
		b.update(func(tx scheduler.Tx) error {
			if err := rules.Beat(h, rules.Hand{Holder: h.Holder(), Token: h.Token}, 0, tx.Now(),
				tx.Serving()); err != nil {
				return err
			}
			return tx.SaveLeases(b.Context(), []*rules.Held{h})
		})
		check()
		b.end(h, e)
		check()
		switch b.standing(s.ID).State() {
		case lessor.Failed, lessor.Expired:
			b.change(s.ID, retry)
			check()
		case lessor.Waiting:
			b.promote(s.ID)
			check()
		}
	}
}

func lastError(b *bed) {
	s := b.queued()
	check := func(when, want string) {
		b.Helper()
		if got := b.standing(s.ID).LastError; got != want {
			b.Fatalf("%s: the last error is %q, want %q", when, got, want)
		}
	}
	run := func(e rules.End) {
		b.end(b.grant(s, "w1"), e)
		if b.standing(s.ID).Place == rules.Delayed {
			b.promote(s.ID)
		}
	}
	check("at first", "")
	run(failed)
	check("after a failure", failed.Error)
	run(released)
	check("after a release", failed.Error)
	run(expired)
	check("after an expiry", rules.ReasonLeaseExpired)
	run(fatal)
	check("at the end", fatal.Error)
	b.change(s.ID, retry)
	check("after an operator's retry", fatal.Error)
	b.change(s.ID, cancel)
	check("after a cancellation", "")
}

func reportsMerge(b *bed) {
	s, silent := b.queued(), b.queued()
	read := func() map[lessor.JobID]*rules.Report {
		var got map[lessor.JobID]*rules.Report
		b.view(func(v scheduler.View) (err error) {
			got, err = v.Reports(b.Context(), []lessor.JobID{s.ID, silent.ID})
			return err
		})
		b.same("report in standing", b.standing(s.ID).Report, got[s.ID])
		return got
	}
	b.same("before any", read(), nil)
	for _, step := range []struct{ saved, want rules.Report }{
		{rules.Report{Progress: new(0.0), At: 1}, rules.Report{Progress: new(0.0), At: 1}},
		{rules.Report{Message: new("half"), At: 2}, rules.Report{Progress: new(0.0), Message: new("half"), At: 2}},
		{
			rules.Report{Checkpoint: []byte(`{"n":1}`), At: 3}, rules.Report{
				Progress: new(0.0), Message: new("half"), Checkpoint: []byte(`{"n":1}`), At: 3,
			},
		},
		{
			rules.Report{Progress: new(0.1), Message: new(""), At: 4}, rules.Report{
				Progress: new(0.1), Message: new(""), Checkpoint: []byte(`{"n":1}`), At: 4,
			},
		},
		{
			rules.Report{Checkpoint: []byte(`null`), At: 5}, rules.Report{
				Progress: new(0.1), Message: new(""), Checkpoint: []byte(`null`), At: 5,
			},
		},
		{rules.Report{Highest: new(0.7), At: 6}, rules.Report{Highest: new(0.7), At: 6}},
		{rules.Report{Highest: new(0.3), At: 7}, rules.Report{Highest: new(0.7), At: 7}},
		{rules.Report{Highest: new(0.8), At: 8}, rules.Report{Highest: new(0.8), At: 8}},
		{
			rules.Report{At: 9, Interrupted: &rules.Progress{Checkpoint: []byte("a")}}, rules.Report{
				Highest: new(0.8), At: 9, Interrupted: &rules.Progress{Checkpoint: []byte("a")},
			},
		},
		{
			rules.Report{At: 10, Entries: new(3)}, rules.Report{
				Highest: new(0.8), At: 10, Interrupted: &rules.Progress{Checkpoint: []byte("a")},
			},
		},
		{
			rules.Report{At: 11, Interrupted: &rules.Progress{Progress: 0.8}}, rules.Report{
				Highest: new(0.8), At: 11, Interrupted: &rules.Progress{Progress: 0.8},
			},
		},
		{
			rules.Report{At: 12, Question: &lessor.Question{Text: "Deploy?", Answer: new("yes")}}, rules.Report{
				Highest: new(0.8), At: 12, Interrupted: &rules.Progress{Progress: 0.8},
				Question: &lessor.Question{Text: "Deploy?", Answer: new("yes")},
			},
		},
		{
			rules.Report{At: 13}, rules.Report{
				Highest: new(0.8), At: 13, Interrupted: &rules.Progress{Progress: 0.8},
				Question: &lessor.Question{Text: "Deploy?", Answer: new("yes")},
			},
		},
		{
			rules.Report{At: 14, Question: &lessor.Question{Text: "Again?"}}, rules.Report{
				Highest: new(0.8), At: 14, Interrupted: &rules.Progress{Progress: 0.8},
				Question: &lessor.Question{Text: "Again?"},
			},
		},
	} {
		if step.saved.At > 5 {
			step.want.Progress, step.want.Message, step.want.Checkpoint = new(0.1), new(""), []byte(`null`)
		}
		if step.saved.At >= 10 {
			step.want.Entries = new(3)
		}
		step.saved.Job, step.want.Job = s.ID, s.ID
		b.update(func(tx scheduler.Tx) error { return tx.SaveReports(b.Context(), []rules.Report{step.saved}) })
		b.same("report", read(), map[lessor.JobID]*rules.Report{s.ID: &step.want})
	}
	b.update(func(tx scheduler.Tx) error { // one job twice in a batch: a fall after a rise does not hide it
		return tx.SaveReports(b.Context(), []rules.Report{
			{Job: s.ID, Progress: new(0.9), Highest: new(0.9), At: 15}, {
				Job: s.ID, Progress: new(0.2), Highest: new(0.2), At: 15,
			},
		})
	})
	if r := read()[s.ID]; *r.Progress != 0.2 || *r.Highest != 0.9 {
		b.Fatalf("progress %v, highest %v after 0.9 and then 0.2", *r.Progress, *r.Highest)
	}
	b.end(b.grant(s, "w1"), completed)
	if b.standing(s.ID).Report == nil {
		b.Fatal("the report is gone with the lease")
	}
}
