package storetest

import (
	"bytes"
	"errors"
	"strconv"
	"sync"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// both runs fn on two nodes at once.
func both(a, b *bed, fn func(node *bed, i int)) {
	var wg sync.WaitGroup
	for i, node := range []*bed{a, b} {
		wg.Go(func() { fn(node, i) })
	}
	wg.Wait()
}

// gateExcludes counts in a setting from two nodes. Only the gate keeps them from reading the same number.
func gateExcludes(a, b *bed) {
	const each = 60
	both(a, b, func(node *bed, _ int) {
		for range each {
			node.update(func(tx scheduler.Tx) error {
				if err := errors.Join(tx.Gate(node.Context()), tx.Gate(node.Context())); err != nil {
					return err
				}
				value, err := tx.Setting(node.Context(), "count")
				n, _ := strconv.Atoi(string(value)) // not set is 0
				return errors.Join(err, tx.SaveSetting(node.Context(), "count", []byte(strconv.Itoa(n+1))))
			})
		}
	})
	a.view(func(v scheduler.View) error {
		value, err := v.Setting(a.Context(), "count")
		if string(value) != strconv.Itoa(2*each) {
			a.Errorf("%d updates behind the gate counted to %s", 2*each, value)
		}
		return err
	})
}

// oneJobAKeyRaced takes the same keys on two nodes at once, in opposite orders: each key has one holder, and both
// nodes get the same one.
func oneJobAKeyRaced(a, b *bed) {
	const keys = 300
	for round := range 15 {
		var got [2]map[scheduler.Key]scheduler.KeyHolder
		both(a, b, func(node *bed, i int) {
			var wanted []scheduler.JobKey
			for k := range keys {
				if i == 1 {
					k = keys - 1 - k
				}
				key := scheduler.Key{Tenant: acme, Key: strconv.Itoa(round*keys + k)}
				wanted = append(wanted, scheduler.JobKey{Key: key, KeyHolder: scheduler.KeyHolder{Job: node.jobID()}})
			}
			node.update(func(tx scheduler.Tx) (err error) {
				got[i], err = tx.TakeKeys(node.Context(), wanted)
				return err
			})
		})
		for k, holder := range got[0] {
			if other, ok := got[1][k]; ok && other != holder {
				a.Fatalf("one node finds key %s with %s, the other with %s", k.Key, holder.Job, other.Job)
			}
		}
	}
}

func oneNumberALane(a, b *bed) {
	for round := range 30 {
		lanes := make([]rules.Lane, 4)
		for i := range lanes {
			lanes[i] = a.draft().Lane
			lanes[i].Type = strconv.Itoa(round*4 + i)
		}
		var got [2][]rules.LaneID
		both(a, b, func(node *bed, i int) {
			asked := lanes
			if i == 1 {
				asked = []rules.Lane{lanes[3], lanes[2], lanes[1], lanes[0]}
			}
			node.update(func(tx scheduler.Tx) (err error) {
				got[i], err = tx.Lanes(node.Context(), asked)
				return err
			})
		})
		a.same("numbers of lanes", got[0], []rules.LaneID{got[1][3], got[1][2], got[1][1], got[1][0]})
	}
}

func seqsAreNotShared(a, b *bed) {
	taken := map[int64]int{}
	var mu sync.Mutex
	both(a, b, func(node *bed, i int) {
		for range 50 {
			node.update(func(tx scheduler.Tx) error {
				first, err := tx.Seqs(node.Context(), 100)
				mu.Lock()
				defer mu.Unlock()
				for n := first; n < first+100; n++ {
					if _, twice := taken[n]; twice {
						node.Fatalf("place %d was given twice", n)
					}
					taken[n] = i
				}
				return err
			})
		}
	})
}

// restartMovesNoFloor: the start of a node is no gap in the service while another node serves.
func restartMovesNoFloor(a, b *bed) {
	serve := func(node *bed) rules.Serving {
		s, err := node.Serve(node.Context(), false)
		node.must(err)
		return s
	}
	if serve(a).Since == 0 {
		a.Fatal("the first to serve set no floor")
	}
	b.reopen()
	floor := serve(a).Since
	if got := serve(b).Since; got != floor {
		b.Fatalf("a node started and the floor went from %v to %v", floor, got)
	}
	b.update(func(tx scheduler.Tx) error {
		if got := tx.Serving().Since; got != floor {
			b.Fatalf("a node wrote and the floor is %v, not %v", got, floor)
		}
		return nil
	})
}

// shortLivesAreNoService lets one node after the other begin to serve, and do nothing else. However soon one follows
// the other, no heartbeat could be accepted for long, so the floor moves.
func shortLivesAreNoService(a, b *bed) {
	lives := make([]*bed, 8)
	for i := range lives {
		lives[i] = &bed{T: a.T, Store: b.open()}
		b.Cleanup(func() { b.must(lives[i].Close()) })
	}
	first, err := a.Serve(a.Context(), false)
	a.must(err)
	last := first
	for _, node := range lives {
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // the database's clock must go on
		last, err = node.Serve(node.Context(), false)
		node.must(err)
		node.update(func(tx scheduler.Tx) error { return tx.SaveServing(node.Context(), tx.Serving()) })
	}
	if last.Since == first.Since {
		b.Errorf("after %v of nodes that began and did no more serving is %+v, want a later floor",
			last.LastBeat.Sub(first.LastBeat), last)
	}
}

func highestRating(a, b *bed) {
	for _, c := range []struct {
		node       *bed
		busy, want int
	}{{a, 3, 3}, {b, 7, 7}, {a, 2, 7}, {b, 1, 2}, {a, 0, 1}} {
		got, err := c.node.Rate(c.node.Context(), c.busy, time.Minute)
		c.node.must(err)
		if got != c.want {
			a.Fatalf("rated %d, the highest is %d, want %d", c.busy, got, c.want)
		}
	}
	if got, err := a.Rate(a.Context(), 0, 0); err != nil || got != 0 {
		a.Fatalf("ratings older than their life give %d, %v", got, err)
	}
}

// servingRaced lets two nodes decide about the brake from the same row. One saves it; the other must repeat, and sees
// the saved row.
func servingRaced(a, b *bed) {
	const first, second = 100, 200
	save := func(node *bed, brake lessor.Instant, before func()) (was lessor.Instant, err error) {
		err = node.Update(node.Context(), func(tx scheduler.Tx) error {
			s := tx.Serving()
			was = s.BrakeUntil
			before()
			s.BrakeUntil, s.LapsedAt = brake, brake
			return tx.SaveServing(node.Context(), s)
		})
		return was, err
	}
	nothing := func() {}
	_, err := save(b, second, func() {
		_, err := save(a, first, nothing)
		a.must(err)
	})
	b.wants(err, scheduler.ErrAgain)
	was, err := save(b, second, nothing)
	b.must(err)
	if was != first {
		b.Errorf("the node that repeats sees the brake at %v, want %v", was, lessor.Instant(first))
	}
	got, err := a.Serve(a.Context(), false)
	a.must(err)
	if got.BrakeUntil != second {
		a.Errorf("the brake is at %v, want %v", got.BrakeUntil, lessor.Instant(second))
	}
}

// nodesExchangeWorkers lets each of two nodes publish a note about its workers, and read the last note of the other.
func nodesExchangeWorkers(a, b *bed) {
	for _, c := range []struct {
		node *bed
		note string
		want []byte // nil = nothing
	}{{a, "one", nil}, {b, "two", []byte("one")}, {a, "three", []byte("two")}, {b, "four", []byte("three")}} {
		got, err := c.node.ExchangeWorkers(c.node.Context(), []byte(c.note), time.Minute)
		c.node.must(err)
		if !bytes.Equal(bytes.Join(got, nil), c.want) {
			a.Fatalf("the node that wrote %q read %q, want %q", c.note, got, c.want)
		}
	}
	if got, err := a.ExchangeWorkers(a.Context(), nil, 0); err != nil || len(got) != 0 {
		a.Fatalf("a note is returned after the end of its life: %q, %v", got, err)
	}
}
