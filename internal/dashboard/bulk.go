package dashboard

import (
	"context"
	"strconv"
	"sync"

	"lessor"
	"lessor/internal/fault"
	"lessor/internal/quota"
	"lessor/internal/scheduler"
)

const (
	maxBulk     = 10_000 // jobs of one operation
	bulkPage    = 1000
	bulkWorkers = 2   // operations that run at once
	bulkWaiting = 16  // operations that wait or run
	bulksKept   = 100 // operations whose results are remembered
)

// bulks are operations on all jobs that match a filter.
type bulks struct {
	work   chan *bulk
	places *quota.Limit // bounds the operations that wait or run; one tenant gets at most half
	mu     sync.Mutex   // guards the fields below, and the state of each bulk
	last   int
	all    map[string]*bulk
}

func newBulks() bulks {
	return bulks{work: make(chan *bulk, bulkWaiting), places: quota.New(bulkWaiting), all: map[string]*bulk{}}
}

// bulk is one operation.
type bulk struct {
	caller scheduler.Caller
	ask    lessor.JobFilter
	bulkState
}

// bulkState is the progress of an operation, for its page.
type bulkState struct {
	ID      string
	Action  string // cancel or retry
	Filter  jobFilter
	Found   int // jobs that matched at its start
	Handled int // jobs that were handled
	Changed int
	Skipped int // jobs in a state that does not allow it
	Failed  string
	Ended   bool
}

// Left is the number of jobs that were found and not handled.
func (s bulkState) Left() int { return max(0, s.Found-s.Handled) }

var (
	errBulkBusy = &lessor.Error{
		Code: lessor.CodeRateLimited, Detail: "other bulk operations are waiting; try again when they are done",
	}
	errBulk = &lessor.Error{
		Code: lessor.CodeInvalidValue, Detail: "a bulk operation is cancel or retry, on 1 to 10000 jobs",
	}
	errNoBulk = &lessor.Error{
		Code: lessor.CodeRouteNotFound, Detail: "this operation is not known here; a restart forgets them",
	}
)

// add queues an operation and returns its id.
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
	b.work <- one // does not block: the channel has room for all places
	return one.ID, nil
}

// find returns the progress of an operation to callers without a tenant and to callers of the same tenant.
func (b *bulks) find(id string, c scheduler.Caller) (bulkState, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.all[id]
	if one == nil || c.Tenant != nil && (one.caller.Tenant == nil || *one.caller.Tenant != *c.Tenant) {
		return bulkState{}, false
	}
	return one.bulkState, true
}

func (b *bulks) update(one *bulk, change func(*bulkState)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&one.bulkState)
}

// runBulks runs operations until ctx is done.
func (d *Dashboard) runBulks(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case one := <-d.bulk.work:
			err := fault.Try(fault.Dashboard, d.fault, func() error { return d.run(ctx, one) })
			d.bulk.places.Leave(one.caller.Tenant, 1)
			d.bulk.update(one, func(s *bulkState) {
				s.Ended = true
				if err != nil {
					s.Failed = err.Error()
				}
			})
			d.changes.Add(1)
		}
	}
}

// run handles the jobs, newest first. The cursor is the place of a job, so it stays valid when jobs leave the filter.
func (d *Dashboard) run(ctx context.Context, one *bulk) error {
	ask := one.ask
	for handled := 0; handled < one.Found; {
		ask.Limit = min(bulkPage, one.Found-handled)
		jobs, next, err := d.scheduler.Jobs(ctx, one.caller, ask)
		if err != nil {
			return err
		}
		for _, job := range jobs {
			if err := d.change(ctx, one, job.ID); err != nil {
				return err
			}
		}
		handled += len(jobs)
		if next == "" {
			return nil
		}
		ask.Cursor = next
	}
	return nil
}

// change cancels or retries one job. If the job's state does not allow it, the job is skipped.
func (d *Dashboard) change(ctx context.Context, one *bulk, id lessor.JobID) error {
	var err error
	if one.Action == "cancel" {
		_, err = d.scheduler.Cancel(ctx, one.caller, id, false)
	} else {
		_, err = d.scheduler.Retry(ctx, one.caller, id)
	}
	skipped := lessor.CodeOf(err) == lessor.CodeConflict || lessor.CodeOf(err) == lessor.CodeJobNotFound
	if err != nil && !skipped {
		return err
	}
	d.bulk.update(one, func(s *bulkState) {
		s.Handled++
		if skipped {
			s.Skipped++
		} else {
			s.Changed++
		}
	})
	return nil
}

// bulkQuestion is the page that asks for confirmation.
type bulkQuestion struct {
	Action  string
	Filter  jobFilter
	Count   int
	AtLeast bool // more jobs match than one operation takes
}

// bulkAsk counts the jobs of an operation.
func (v *visit) bulkAsk() (view, error) {
	q := v.r.URL.Query()
	p := bulkQuestion{Action: q.Get("action"), Filter: readFilter(q)}
	if p.Action != "cancel" && p.Action != "retry" {
		return view{}, errBulk
	}
	ask, err := p.Filter.ask()
	if err != nil {
		return view{}, err
	}
	for ask.Limit = bulkPage; p.Count < maxBulk; {
		jobs, next, err := v.scheduler.Jobs(v.r.Context(), v.caller, ask)
		if err != nil {
			return view{}, err
		}
		p.Count += len(jobs)
		if ask.Cursor = next; next == "" {
			return view{"Bulk " + p.Action, "bulk", p}, nil
		}
	}
	p.AtLeast = true
	return view{"Bulk " + p.Action, "bulk", p}, nil
}

// bulkStart starts an operation on as many jobs as were counted.
func (v *visit) bulkStart() error {
	found, err := strconv.Atoi(v.form.Get("count"))
	action := v.form.Get("action")
	if err != nil || found < 1 || found > maxBulk || action != "cancel" && action != "retry" {
		return errBulk
	}
	filter := readFilter(v.form)
	ask, err := filter.ask()
	if err != nil {
		return err
	}
	state := bulkState{Action: action, Filter: filter, Found: found}
	id, err := v.bulk.add(&bulk{caller: v.caller, ask: ask, bulkState: state})
	if err != nil {
		return err
	}
	v.redirect("/jobs/bulk/progress/" + id)
	return nil
}

func (v *visit) bulkProgress() (view, error) {
	state, ok := v.bulk.find(v.r.PathValue("id"), v.caller)
	if !ok {
		return view{}, errNoBulk
	}
	return view{"Bulk " + state.Action, "progress", state}, nil
}
