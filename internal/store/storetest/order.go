package storetest

import (
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// lockOrder runs transactions on two nodes that lock the same rows. Each locks the kinds of rows in the common order,
// and the rows of one kind in any order. No transaction may fail.
func lockOrder(a, b *bed) {
	var leases []lessor.LeaseID
	var jobs []lessor.JobID
	for range 24 {
		h := a.grant(a.queued(), "w1")
		leases, jobs = append(leases, h.ID), append(jobs, h.Turn.Job)
	}
	for i := range 8 {
		jobs = append(jobs, a.queued().ID, a.queued(func(s *rules.Spec) {
			s.RunAt = 4_000_000_000_000 + lessor.Instant(i)
		}).ID)
	}
	const rounds = 1000
	both(a, b, func(node *bed, i int) {
		random := rand.New(rand.NewPCG(uint64(i), 7))
		for n := range rounds / 2 {
			err := node.Update(node.Context(), func(tx scheduler.Tx) error {
				if random.IntN(4) == 0 {
					_, err := tx.Lock(node.Context(), pick(random, jobs, 6))
					return errors.Join(err, errTest)
				}
				return errors.Join(node.mixed(tx, random, leases), errTest)
			})
			if !errors.Is(err, errTest) || errors.Is(err, scheduler.ErrAgain) ||
				errors.Is(err, scheduler.ErrUnreachable) {
				node.Errorf("round %d: %v", n, err)
				return
			}
		}
	})
}

// noWaitBehindGate: a node that has the gate waits for no job that another node has locked, because that node may wait
// for the gate.
func noWaitBehindGate(a, b *bed) {
	leased := a.grant(a.queued(), "w1").Turn.Job
	delayed := a.queued(later).ID
	for _, job := range []lessor.JobID{leased, delayed} {
		b.update(func(tx scheduler.Tx) error {
			if _, err := tx.Lock(b.Context(), []lessor.JobID{job}); err != nil {
				return err
			}
			a.wants(a.Update(a.Context(), func(tx scheduler.Tx) error {
				if err := tx.Gate(a.Context()); err != nil {
					return err
				}
				_, err := tx.Lock(a.Context(), []lessor.JobID{job})
				return err
			}), scheduler.ErrAgain)
			return tx.Gate(b.Context())
		})
	}
}

// mixed takes locks of every kind, as a commit of the scheduler does.
func (b *bed) mixed(tx scheduler.Tx, random *rand.Rand, leases []lessor.LeaseID) error {
	ctx := b.Context()
	var wanted []scheduler.JobKey
	for range random.IntN(4) {
		wanted = append(wanted, scheduler.JobKey{
			Key:       scheduler.Key{Tenant: acme, Key: strconv.Itoa(random.IntN(10))},
			KeyHolder: scheduler.KeyHolder{Job: b.jobID()},
		})
	}
	if _, err := tx.TakeKeys(ctx, wanted); err != nil {
		return err
	}
	held, err := tx.Leases(ctx, pick(random, leases, 10))
	if err != nil {
		return err
	}
	var saved []*rules.Held
	for _, h := range held {
		h.BeatAt++
		saved = append(saved, h)
	}
	if err := tx.SaveLeases(ctx, saved); err != nil {
		return err
	}
	if random.IntN(2) == 0 {
		if _, err := tx.Due(ctx, 4_000_000_000_009, 3); err != nil {
			return err
		}
	}
	if random.IntN(2) == 0 {
		return tx.Gate(ctx)
	}
	return nil
}

func pick[T any](random *rand.Rand, from []T, n int) []T {
	out := make([]T, 0, n)
	for _, i := range random.Perm(len(from))[:n] {
		out = append(out, from[i])
	}
	return out
}

// cancelMoving locks a job that another node moves from place to place: it is always found, and does not move while it
// is locked.
func cancelMoving(a, b *bed) {
	s := a.queued()
	const looks = 150
	stop := make(chan bool)
	var mover sync.WaitGroup
	mover.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := a.Update(a.Context(), func(tx scheduler.Tx) error { return a.onward(tx, s) }); err != nil {
				a.Errorf("move on: %v", err)
				return
			}
		}
	})
	places := map[rules.Place]int{}
	for n := range looks {
		err := b.Update(b.Context(), func(tx scheduler.Tx) error {
			all, err := tx.Lock(b.Context(), []lessor.JobID{s.ID, b.jobID()})
			if err != nil {
				return err
			}
			st := all[s.ID]
			if len(all) != 1 || st == nil || st.Place == rules.Nowhere {
				b.Errorf("locked, the job stands as %+v", st)
				return nil
			}
			places[st.Place]++
			time.Sleep(time.Millisecond) //nolint:forbidigo // the other node would move it meanwhile, if it could
			if again := b.turnIn(tx, s.ID); again != st.Turn {
				b.Errorf("a locked job moved: it was %+v and is %+v", st.Turn, again)
			}
			return nil
		})
		if err != nil && !errors.Is(err, scheduler.ErrAgain) {
			b.Errorf("look %d: %v", n, err)
			break
		}
	}
	close(stop)
	mover.Wait()
	if caught := places[rules.InQueue] + places[rules.Leased] + places[rules.Delayed]; caught < looks*9/10 {
		b.Errorf("the job was caught %d times of %d: %v", caught, looks, places)
	}
	b.change(s.ID, cancel)
	b.at(s.ID, rules.Ended, lessor.Cancelled, b.standing(s.ID).Turn)
}

// onward moves a job to its next place: queue, lease, delayed, lease, queue and so on.
func (b *bed) onward(tx scheduler.Tx, s *rules.Spec) error {
	ctx := b.Context()
	all, err := tx.Standings(ctx, []lessor.JobID{s.ID})
	if err != nil {
		return err
	}
	switch st := all[s.ID]; st.Place {
	case rules.InQueue:
		if err := tx.Gate(ctx); err != nil {
			return err
		}
		if all, err = tx.Standings(ctx, []lessor.JobID{s.ID}); err != nil || all[s.ID].Place != rules.InQueue {
			return err
		}
		return tx.Move(ctx, []scheduler.Move{b.grantMove(s, all[s.ID].Turn, "w1", tx.Now())})
	case rules.Leased:
		held, err := tx.Leases(ctx, []lessor.LeaseID{st.Held.ID})
		if err != nil || held[st.Held.ID] == nil {
			return err
		}
		end, h := released, held[st.Held.ID]
		if h.Turn.Interruptions%2 == 0 {
			end.Delay = time.Hour
		}
		next, err := rules.Conclude(h, end, rules.Retries{MaxInterruptions: math.MaxInt32}, tx.Now(), 0)
		if err != nil {
			return err
		}
		return tx.Move(ctx, []scheduler.Move{{
			From: rules.Leased, To: next.Place, Turn: next.Turn, Held: h, Wait: next.Wait, Attempt: next.Attempt,
		}})
	case rules.Delayed:
		due, err := tx.Due(ctx, st.Wait.Until, 1)
		if err != nil || len(due) == 0 {
			return err
		}
		return tx.Move(ctx, []scheduler.Move{
			{From: rules.Delayed, To: rules.InQueue, Turn: rules.Promote(due[0].Turn, due[0].Wait, tx.Now())},
		})
	}
	return nil
}
