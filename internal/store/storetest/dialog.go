package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

func message(job lessor.JobID, n int64) rules.Message {
	return rules.Message{Job: job, Message: lessor.Message{
		Seq: n, Text: fmt.Sprintf("number %d, \"é\"\n", n), SentAt: lessor.Instant(1000 + n), SentBy: "olga",
	}}
}

func (b *bed) messages(limit int, ids ...lessor.JobID) (all map[lessor.JobID][]lessor.Message) {
	b.Helper()
	b.view(func(v scheduler.View) (err error) {
		all, err = v.Messages(b.Context(), ids, limit)
		return err
	})
	return all
}

func (b *bed) messaged() map[lessor.JobID]int64 {
	b.Helper()
	last := map[lessor.JobID]int64{}
	b.view(func(v scheduler.View) error {
		return v.EachMessaged(b.Context(), func(id lessor.JobID, n int64) error {
			if last[id] != 0 {
				b.Fatalf("job %s is read twice", id)
			}
			last[id] = n
			return nil
		})
	})
	return last
}

// messagesInOrder keeps messages until they are dropped.
func messagesInOrder(b *bed) {
	one, two, none := b.endedAt(100, ""), b.queued(), b.queued()
	b.update(func(tx scheduler.Tx) error {
		var ms []rules.Message
		for n := range int64(12) { // 10 comes after 9
			ms = append(ms, message(one.ID, n+1), message(two.ID, n+1))
		}
		return tx.SaveMessages(b.Context(), ms)
	})
	list := func(from, to int64) (ms []lessor.Message) {
		for n := from; n <= to; n++ {
			ms = append(ms, message(one.ID, n).Message)
		}
		return ms
	}
	for range 2 {
		got := b.messages(11, one.ID, none.ID, two.ID)
		b.same("messages", got[one.ID], list(1, 11))
		b.same("messages of another job", got[two.ID], list(1, 11))
		b.same("messages of a job that is named twice", b.messages(99, one.ID, two.ID, one.ID)[one.ID], list(1, 12))
		b.same("messages of a job without any", got[none.ID], nil)
		b.same("jobs with messages", b.messaged(), map[lessor.JobID]int64{one.ID: 12, two.ID: 12})
		b.reopen()
	}
	b.wants(b.Update(b.Context(), func(tx scheduler.Tx) error {
		return tx.SaveMessages(b.Context(), []rules.Message{message(one.ID, 13), message(one.ID, 12)})
	}), scheduler.ErrBadCall)
	b.update(func(tx scheduler.Tx) error {
		return tx.DropMessages(b.Context(), []scheduler.Seen{
			{Job: one.ID, UpTo: 3}, {Job: two.ID, UpTo: 99}, {Job: one.ID, UpTo: 2},
		})
	})
	b.same("messages that are left", b.messages(100, one.ID, two.ID)[one.ID], list(4, 12))
	b.same("jobs with messages that are left", b.messaged(), map[lessor.JobID]int64{one.ID: 12})
	for _, r := range []rules.Report{{Sent: 3}, {Seen: 2}, {Sent: 2, Seen: 1}} {
		r.Job, r.At = two.ID, 1
		b.update(func(tx scheduler.Tx) error { return tx.SaveReports(b.Context(), []rules.Report{r}) })
	}
	if r := b.standing(two.ID).Report; r.Sent != 3 || r.Seen != 2 {
		b.Fatalf("%d sent and %d seen, want 3 and 2", r.Sent, r.Seen)
	}
	b.purge(200, 10)
	b.same("messages of a purged job", b.messages(100, one.ID)[one.ID], nil)
}

// messagesByKey drops messages. Those with a key stay, for the key alone, until they are dropped without it.
func messagesByKey(b *bed) {
	job, other := b.endedAt(100, ""), b.queued()
	keyed := func(id lessor.JobID, n int64, key string) rules.Message {
		m := message(id, n)
		m.Key = key
		return m
	}
	save := func(ms ...rules.Message) error {
		return b.Update(b.Context(), func(tx scheduler.Tx) error { return tx.SaveMessages(b.Context(), ms) })
	}
	b.wants(save(keyed(job.ID, 1, "a"), message(job.ID, 2), message(job.ID, 3), keyed(job.ID, 4, "b"),
		keyed(other.ID, 1, "a")), nil)
	b.wants(save(keyed(job.ID, 5, "b")), scheduler.ErrBadCall)
	known := func(key string) (m *rules.Message) {
		b.update(func(tx scheduler.Tx) (err error) {
			m, err = tx.KeyedMessage(b.Context(), job.ID, key)
			return err
		})
		return m
	}
	want := func(key string, m *rules.Message) {
		b.Helper()
		b.same("the message with the key "+key, known(key), m)
	}
	drop := func(upTo, keyless int64) {
		b.update(func(tx scheduler.Tx) error {
			return tx.DropMessages(b.Context(), []scheduler.Seen{{Job: job.ID, UpTo: upTo, Keyless: keyless}})
		})
	}
	drop(3, 0)
	a, last := keyed(job.ID, 1, "a"), keyed(job.ID, 4, "b")
	for range 2 {
		want("a", &a)
		want("b", &last)
		want("c", nil)
		b.same("messages", b.messages(10, job.ID)[job.ID], []lessor.Message{last.Message})
		b.reopen()
	}
	drop(4, 1)
	want("a", nil)
	want("b", &last)
	b.same("messages that are left", b.messages(10, job.ID)[job.ID], nil)
	b.same("jobs with messages", b.messaged(), map[lessor.JobID]int64{other.ID: 1})
	b.purge(200, 10)
	want("b", nil)
}

// answeredOnceAlone is answeredOnce with one node.
func answeredOnceAlone(b *bed) { answeredOnce(b, b) }

// answeredOnce lets two answers race with each other, with the end of the question's time and with a cancel, and then
// restarts the store. At most one answer is accepted, and it is the one that is stored.
func answeredOnce(a, b *bed) {
	var raced []*rules.Standing
	for range 25 {
		s := a.queued()
		h := a.grant(s, "w1")
		end := asked
		end.Delay = time.Duration(1+rand.IntN(15)) * time.Millisecond
		a.update(func(tx scheduler.Tx) error {
			m, err := endMove(h, end, tx.Now())
			question := rules.Report{Job: s.ID, At: tx.Now(), Question: rules.Asked(h, end, tx.Now())}
			return errors.Join(err, tx.SaveReports(a.Context(), []rules.Report{question}),
				tx.Move(a.Context(), []scheduler.Move{m}))
		})
		var wg sync.WaitGroup
		var won [2]bool
		for i, answer := range []string{"yes", "no"} {
			node := []*bed{a, b}[i]
			wg.Go(func() { won[i] = node.decide(s.ID, answering(h, answer)) })
		}
		wg.Go(func() { a.decide(s.ID, cancel) })
		wg.Go(b.promoteDue)
		wg.Wait()
		st := a.standing(s.ID)
		q := st.Report.Question
		switch {
		case won[0] && won[1]:
			a.Fatal("two answers were accepted")
		case won[0] && *q.Answer != "yes", won[1] && *q.Answer != "no", !won[0] && !won[1] && q.Answer != nil:
			a.Fatalf("answers %v, and the question is %+v", won, q)
		case q.Answer == nil && st.State() == lessor.Waiting:
			a.Fatal("the job still waits")
		}
		if r := rules.Record(a.history(s.ID)); rules.Replay(r) != st.State() || len(r) != st.Turn.Steps {
			a.Fatalf("the record ends %s after %d of %d entries, and the job is %s", rules.Replay(r), len(r),
				st.Turn.Steps, st.State())
		}
		a.onePlaceEach()
		raced = append(raced, st)
	}
	a.reopen()
	if a != b {
		b.reopen()
	}
	for _, before := range raced {
		b.same("a job after the restart", b.standing(before.Spec.ID), before)
	}
}

func answering(h *rules.Held, text string) func(*rules.Standing, lessor.Instant) (rules.Change, error) {
	a := lessor.Answer{QuestionID: new(h.ID.String()), Answer: &text}
	return func(s *rules.Standing, now lessor.Instant) (rules.Change, error) {
		return rules.Answer(s, &a, "olga", now)
	}
}

// decide makes a change as the scheduler does, at a random moment of the next milliseconds, and reports whether it was
// accepted.
func (b *bed) decide(id lessor.JobID, decide func(*rules.Standing, lessor.Instant) (rules.Change, error)) bool {
	<-time.After(time.Duration(rand.IntN(15)) * time.Millisecond)
	for {
		refused := false
		err := b.Update(b.Context(), func(tx scheduler.Tx) error {
			all, err := tx.Lock(b.Context(), []lessor.JobID{id})
			if err != nil {
				return err
			}
			c, err := decide(all[id], tx.Now())
			if refused = err != nil || c.Next == nil; refused {
				return nil
			}
			if c.Question != nil {
				r := rules.Report{Job: id, At: tx.Now(), Question: c.Question}
				if err := tx.SaveReports(b.Context(), []rules.Report{r}); err != nil {
					return err
				}
			}
			return errors.Join(tx.Move(b.Context(), []scheduler.Move{changeMove(all[id], c)}),
				tx.Note(b.Context(), c.Notes))
		})
		if errors.Is(err, scheduler.ErrAgain) {
			continue
		}
		if err != nil {
			b.Error(err)
		}
		return err == nil && !refused
	}
}

// promoteDue keeps queuing jobs that are due, for longer than any question of answeredOnce waits.
func (b *bed) promoteDue() {
	for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
		err := b.Update(b.Context(), func(tx scheduler.Tx) error {
			due, err := tx.Due(b.Context(), tx.Now(), 10)
			var moves []scheduler.Move
			for _, w := range due {
				moves = append(moves, scheduler.Move{
					From: rules.Delayed, To: rules.InQueue, Turn: rules.Promote(w.Turn, w.Wait, tx.Now()),
				})
			}
			return errors.Join(err, tx.Move(b.Context(), moves))
		})
		if err != nil && !errors.Is(err, scheduler.ErrAgain) {
			b.Error(err)
			return
		}
	}
}
