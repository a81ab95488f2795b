package storetest

import (
	"strings"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

func specsComeBack(b *bed) {
	plain := b.draft()
	full := b.draft(func(s *rules.Spec) {
		s.Lane = rules.Lane{
			Tenant: globex, Class: "bulk", Priority: lessor.Background, Type: "übersetzen", Unique: true, Units: 12,
			LockKey: "db:1", Definition: "nightly",
		}
		s.Tags, s.IdempotencyKey, s.BodyHash = []string{"a", `"quoted"`, "ü\x00"}, "key-1", [32]byte{1, 2}
		s.MaxRuntime, s.MaxAttempts, s.BackoffFirst, s.BackoffMax = time.Hour, 50, 250*time.Millisecond, time.Minute
		s.RunAt, s.TickAt = 1_700_000_100_000, 1_700_000_100_001
	})
	b.submit(plain, full)
	ids := []lessor.JobID{plain.ID, full.ID, b.jobID()}
	want := map[lessor.JobID]*rules.Spec{plain.ID: plain, full.ID: full}
	read := func(v scheduler.View) error {
		got, err := v.Specs(b.Context(), ids)
		b.same("specs", got, want)
		return err
	}
	b.view(read)
	b.update(func(tx scheduler.Tx) error { return read(tx) })
	b.reopen()
	b.view(read)
	b.update(func(tx scheduler.Tx) error { return read(tx) })
	st := b.standing(full.ID)
	b.same("spec in standing", st.Spec, full)
}

func payloadsComeBack(b *bed) {
	payloads := []string{
		`{}`, `{"s":"\u0000"}`, `{"s":"\ud800"}`, `{"n":1e400000}`, `{"n":12345678901234567890.10}`,
		"{ \"spaced\" :\n1 }",
		`{"s":"` + strings.Repeat("x", 200<<10) + `"}`,
	}
	var specs []*rules.Spec
	for _, p := range payloads {
		specs = append(specs, b.draft(func(s *rules.Spec) { s.Payload = []byte(p) }))
	}
	b.submit(specs...)
	for i, s := range specs {
		if got := string(b.standing(s.ID).Spec.Payload); got != payloads[i] {
			b.Errorf("payload %.40q came back as %.40q", payloads[i], got)
		}
	}
	for i, s := range specs { // result, error and checkpoint are as free
		h := b.grant(s, "w1")
		e := fatal
		e.Outcome, e.Result, e.Error = rules.OutcomeCompleted, []byte(payloads[i]), payloads[i]
		b.end(h, e)
		b.update(func(tx scheduler.Tx) error {
			return tx.SaveReports(b.Context(), []rules.Report{
				{Job: s.ID, Checkpoint: []byte(payloads[i]), At: tx.Now()},
			})
		})
		st := b.standing(s.ID)
		for what, got := range map[string]string{
			"result": string(st.Done.Result), "error": st.Done.Attempt.Error,
			"checkpoint": string(st.Report.Checkpoint),
		} {
			if got != payloads[i] {
				b.Errorf("%s %.40q came back as %.40q", what, payloads[i], got)
			}
		}
	}
}

func lanesKeepNumbers(b *bed) {
	base := b.draft().Lane
	lanes := []rules.Lane{base, base, base, base, base, base, base, base, base}
	lanes[1].Tenant, lanes[2].Class, lanes[3].Priority, lanes[4].Type = globex, "bulk", lessor.High, "fax"
	lanes[5].Unique, lanes[6].Units, lanes[7].LockKey, lanes[8].Definition = true, 2, "db:1", "nightly"
	var first []rules.LaneID
	register := func() (ids []rules.LaneID) {
		b.update(func(tx scheduler.Tx) (err error) {
			ids, err = tx.Lanes(b.Context(), append(lanes, lanes[0]))
			return err
		})
		return ids
	}
	first = register()
	known := map[rules.LaneID]rules.Lane{}
	for i, id := range first[:len(lanes)] {
		known[id] = lanes[i]
	}
	if len(known) != len(lanes) || first[0] != first[len(lanes)] {
		b.Fatalf("lanes that differ share a number, or one has two: %v", first)
	}
	b.same("numbers given again", register(), first)
	lost := base
	lost.Type = "lost"
	b.wants(b.Update(b.Context(), func(tx scheduler.Tx) error { // a lane of a failed transaction is not kept
		if _, err := tx.Lanes(b.Context(), []rules.Lane{lost}); err != nil {
			return err
		}
		return errTest
	}), errTest)
	b.same("numbers after a failure", register(), first)
	stored := b.lanes([]rules.Lane{lost}) // it is not kept in memory either
	b.view(func(v scheduler.View) error {
		found, err := v.LanesByID(b.Context(), stored)
		b.same("a lane that was registered again", found, map[rules.LaneID]rules.Lane{stored[0]: lost})
		return err
	})
	known[stored[0]] = lost
	b.reopen()
	b.same("numbers after a restart", register(), first)
	got := map[rules.LaneID]rules.Lane{}
	b.view(func(v scheduler.View) error {
		return v.EachLane(b.Context(), func(id rules.LaneID, l rules.Lane) error {
			got[id] = l
			return nil
		})
	})
	b.same("lanes", got, known)
	b.view(func(v scheduler.View) error {
		some, err := v.LanesByID(b.Context(), []rules.LaneID{first[1], 1 << 40, first[2]})
		b.same("lanes by number", some, map[rules.LaneID]rules.Lane{first[1]: lanes[1], first[2]: lanes[2]})
		return err
	})
}

func seqsRise(b *bed) {
	last := int64(0)
	take := func(n int, end error) {
		err := b.Update(b.Context(), func(tx scheduler.Tx) error {
			for range 3 {
				first, err := tx.Seqs(b.Context(), n)
				if err != nil {
					return err
				}
				if first <= last {
					b.Fatalf("place %d was given after %d", first, last)
				}
				last = first + int64(n) - 1
			}
			return end
		})
		if end == nil {
			b.must(err)
		}
	}
	for _, n := range []int{1, 1000, 1, 900_000, 900_000, 3_000_000} {
		take(n, nil)
		take(n, errTest)
	}
}

func oneJobAnID(b *bed) {
	s := b.queued()
	again := b.draft(func(d *rules.Spec) { d.ID = s.ID })
	// A caller that repeats a batch after a lost answer asks Specs first: a second Insert of an id is never ignored.
	b.wants(b.Update(b.Context(), func(tx scheduler.Tx) error {
		return insert(b.Context(), tx, b.draft(), again)
	}), scheduler.ErrBadCall)
	b.same("the first job", b.standing(s.ID).Spec, s)
	b.onePlaceEach()
}

func oneJobAKey(b *bed) {
	keyed := func(s *rules.Spec) { s.IdempotencyKey, s.BodyHash = "key-1", [32]byte{31: 7} }
	first := b.queued(keyed)
	rival := b.draft(keyed, func(s *rules.Spec) { s.BodyHash = [32]byte{31: 8} })
	other := b.draft(keyed, func(s *rules.Spec) { s.Lane.Tenant = globex })
	shout := b.draft(func(s *rules.Spec) { s.IdempotencyKey = "KEY-1" })
	take := func(specs ...*rules.Spec) (got map[scheduler.Key]scheduler.KeyHolder) {
		wanted := make([]scheduler.JobKey, len(specs))
		for i, s := range specs {
			wanted[i] = jobKey(s)
		}
		b.update(func(tx scheduler.Tx) (err error) {
			got, err = tx.TakeKeys(b.Context(), wanted)
			return err
		})
		return got
	}
	want := map[scheduler.Key]scheduler.KeyHolder{}
	for _, s := range []*rules.Spec{first, other, shout} {
		want[jobKey(s).Key] = jobKey(s).KeyHolder
	}
	b.same("holders: the first job keeps its key, another tenant's and another spelling are free",
		take(rival, other, shout, other), want)
	b.same("holders, asked again", take(shout, rival, other), want)
	b.update(func(tx scheduler.Tx) error { return tx.FreeKeys(b.Context(), []scheduler.Key{jobKey(other).Key}) })
	late := b.draft(keyed, func(s *rules.Spec) { s.Lane.Tenant = globex })
	b.same("holder of a key that was freed", take(late), map[scheduler.Key]scheduler.KeyHolder{
		jobKey(late).Key: jobKey(late).KeyHolder,
	})
	twin := b.draft(func(s *rules.Spec) { s.IdempotencyKey = "key-2" })
	b.same("holder of a key that two jobs want at once", take(twin, b.draft(func(s *rules.Spec) {
		s.IdempotencyKey = "key-2"
	})),
		map[scheduler.Key]scheduler.KeyHolder{jobKey(twin).Key: jobKey(twin).KeyHolder})
}
