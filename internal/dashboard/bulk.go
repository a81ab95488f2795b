package dashboard

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"lessor"
	"lessor/internal/quota"
	"lessor/internal/scheduler"
)

// A bulk operation touches at most so many jobs, several run at a time, and the results of the last are remembered.
const (
	maxBulk     = 10_000
	bulkPage    = 1000
	bulkWorkers = 2
	bulkWaiting = 16 // or running
	bulksKept   = 100
)

// bulks are operations on all jobs that a filter finds.
type bulks struct {
	work   chan *bulk
	places *quota.Limit // of operations that wait or run; one tenant gets at most half
	mu     sync.Mutex   // of the fields below, and of those of a bulk that change
	last   int
	all    map[string]*bulk
}

func newBulks() bulks {
	return bulks{work: make(chan *bulk, bulkWaiting), places: quota.New(bulkWaiting), all: map[string]*bulk{}}
}

// bulk is one of them.
type bulk struct {
	caller scheduler.Caller
	ask    lessor.JobFilter
	bulkState
}

// bulkState is what a page shows of it.
type bulkState struct {
	ID      string
	Action  string // cancel or retry
	Filter  jobFilter
	Found   int // how many there were when it began
	Looked  int
	Changed int
	Skipped int // in a state that does not allow it
	Failed  string
	Ended   bool
}

var errBulkBusy = &lessor.Error{Code: lessor.CodeRateLimited, Detail: "other bulk operations are waiting; try again when they are done"}

// add begins an operation and returns its id.
func (b *bulks) add(one *bulk) (string, error) {
	if !b.places.Enter(one.caller.Tenant, 1) {
		return "", errBulkBusy
	}
	b.mu.Lock()
	b.last++
	one.ID = strconv.Itoa(b.last)
	b.all[one.ID] = one
	delete(b.all, strconv.Itoa(b.last-bulksKept))
	b.mu.Unlock()
	b.work <- one // there is room for as many as there are places
	return one.ID, nil
}

// find returns how an operation stands, to those who began it or share its walls.
func (b *bulks) find(id string, c scheduler.Caller) (bulkState, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.all[id]
	if one == nil || c.Tenant != nil && (one.caller.Tenant == nil || *one.caller.Tenant != *c.Tenant) {
		return bulkState{}, false
	}
	return one.bulkState, true
}

func (b *bulks) note(one *bulk, change func(*bulkState)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&one.bulkState)
}

// workOff runs operations until ctx is done.
func (d *Dashboard) workOff(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case one := <-d.bulk.work:
			err := d.run(ctx, one)
			d.bulk.places.Leave(one.caller.Tenant, 1)
			d.bulk.note(one, func(s *bulkState) {
				s.Ended = true
				if err != nil {
					s.Failed = err.Error()
				}
			})
			d.changes.Add(1)
		}
	}
}

// run goes through the jobs, newest first. The cursor is a job's place, so jobs that leave the filter on the way do not disturb it.
func (d *Dashboard) run(ctx context.Context, one *bulk) error {
	ask := one.ask
	for looked := 0; looked < one.Found; {
		ask.Limit = min(bulkPage, one.Found-looked)
		jobs, next, err := d.scheduler.Jobs(ctx, one.caller, ask)
		if err != nil {
			return err
		}
		for _, job := range jobs {
			if err := d.touch(ctx, one, job.ID); err != nil {
				return err
			}
		}
		looked += len(jobs)
		if next == "" {
			return nil
		}
		ask.Cursor = next
	}
	return nil
}

// touch does it to one job. A refusal is about that job alone.
func (d *Dashboard) touch(ctx context.Context, one *bulk, id lessor.JobID) error {
	var err error
	if one.Action == "cancel" {
		_, err = d.scheduler.Cancel(ctx, one.caller, id, false)
	} else {
		_, err = d.scheduler.Retry(ctx, one.caller, id)
	}
	var refusal *lessor.Error
	skipped := errors.As(err, &refusal) && (refusal.Code == lessor.CodeConflict || refusal.Code == lessor.CodeJobNotFound)
	if err != nil && !skipped {
		return err
	}
	d.bulk.note(one, func(s *bulkState) {
		s.Looked++
		if skipped {
			s.Skipped++
		} else {
			s.Changed++
		}
	})
	return nil
}
