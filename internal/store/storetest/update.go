package storetest

import (
	"context"
	"strconv"
	"sync"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

func oneAtATime(b *bed) {
	const writers, each = 8, 10
	var all sync.WaitGroup
	faults := make(chan error, writers)
	for range writers {
		all.Go(func() {
			for range each {
				err := b.Update(b.Context(), func(tx scheduler.Tx) error {
					value, err := tx.Setting(b.Context(), "count")
					if err != nil {
						return err
					}
					n, _ := strconv.Atoi(string(value)) // not set is 0
					return tx.SaveSetting(b.Context(), "count", []byte(strconv.Itoa(n+1)))
				})
				if err != nil {
					faults <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(faults)
	for err := range faults {
		b.Error(err)
	}
	b.view(func(v scheduler.View) error {
		value, err := v.Setting(b.Context(), "count")
		if string(value) != strconv.Itoa(writers*each) {
			b.Errorf("%d updates counted to %s", writers*each, value)
		}
		return err
	})
}

func nothingGiven(b *bed) {
	b.update(func(tx scheduler.Tx) error {
		ctx := b.Context()
		lanes, err := tx.Lanes(ctx, nil)
		b.must(err)
		b.same("lanes", lanes, nil)
		_, err = tx.Seqs(ctx, 0)
		b.must(err)
		keys, err := tx.TakeKeys(ctx, nil)
		b.must(err)
		b.same("keys", keys, nil)
		leases, err := tx.Leases(ctx, nil)
		b.must(err)
		b.same("leases", leases, nil)
		requested, err := tx.Requested(ctx, nil)
		b.must(err)
		b.same("requested", requested, nil)
		b.must(tx.FreeKeys(ctx, nil))
		b.must(tx.Insert(ctx, nil))
		b.must(tx.SaveLeases(ctx, nil))
		b.must(tx.SaveReports(ctx, nil))
		b.must(tx.SaveMessages(ctx, nil))
		b.must(tx.DropMessages(ctx, nil))
		b.must(tx.Move(ctx, nil))
		messages, err := tx.Messages(ctx, nil, 10)
		b.must(err)
		b.same("messages", messages, nil)
		return tx.Note(ctx, nil)
	})
	b.view(func(v scheduler.View) error {
		ctx := b.Context()
		standings, err := v.Standings(ctx, nil)
		b.must(err)
		b.same("standings", standings, nil)
		page, err := v.List(ctx, scheduler.ListQuery{Limit: 10})
		b.must(err)
		if len(page.Standings) != 0 || page.Next != nil {
			b.Fatalf("an empty store lists %+v", page)
		}
		ends, err := v.LeaseEnds(ctx, nil)
		b.must(err)
		b.same("ends", ends, nil)
		return nil
	})
}

// contextEndsWaiting ends the context of a call that waits for its turn, and of a new view. A transaction that has
// begun continues.
func contextEndsWaiting(b *bed) {
	ctx, end := context.WithCancel(b.Context())
	begun, finish := make(chan bool), make(chan bool)
	result := make(chan error)
	go func() {
		result <- b.Update(ctx, func(tx scheduler.Tx) error {
			close(begun)
			<-finish
			return tx.SaveSetting(ctx, "name", []byte("x"))
		})
	}()
	<-begun
	waiting := make(chan error)
	go func() {
		waiting <- b.Update(ctx, func(scheduler.Tx) error { return nil })
	}()
	end()
	b.wants(<-waiting, context.Canceled)
	close(finish)
	b.must(<-result)
	b.wants(b.View(ctx, func(scheduler.View) error { return nil }), context.Canceled)
	b.view(func(v scheduler.View) error {
		value, err := v.Setting(b.Context(), "name")
		if string(value) != "x" {
			b.Error("an update that had begun was cancelled")
		}
		return err
	})
	before := lessor.At(time.Now().Add(-time.Hour))
	b.update(func(tx scheduler.Tx) error {
		if tx.Now() < before {
			b.Errorf("the store's clock says %v", tx.Now())
		}
		return nil
	})
}
