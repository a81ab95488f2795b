package scheduler

import (
	"context"

	"lessor"
)

// retryBudget bounds what one pass spends on requests that wait, in types that are looked up: about a millisecond. The
// rest are tried in the next pass.
const retryBudget = 20000

// wakeParked reports whether there are parked requests to be tried: it asks the fold what happened, and marks those
// that this may concern.
func (l *loop) wakeParked() bool {
	f, p := l.fold, &l.parked
	woken := f.TakeWoken()
	l.cancels.add(woken.Called, f.Serving.LastBeat)
	if p.size == 0 {
		f.Index.Opened(nil)
		return false
	}
	usable := l.capacity(f.Serving.LastBeat).UsableUnits
	starves := l.starves()
	all, short := woken.All || usable > p.usable, woken.Freed || p.starves && !starves
	p.usable, p.starves = usable, starves
	var calls []*requestCall
	switch {
	case all:
		calls = append(calls, p.ends...)
		f.Index.Opened(nil)
	default:
		if short {
			for r := range p.short {
				calls = append(calls, r)
			}
		}
		for _, worker := range woken.Workers {
			for r := range p.workers[worker] {
				calls = append(calls, r)
			}
		}
		f.Index.Opened(func(tenant lessor.TenantID, typ string) {
			for _, sp := range []space{{}, {true, tenant}} {
				for _, g := range p.spaces[sp] {
					if g.wants(typ) {
						calls = append(calls, g.calls...)
					}
				}
			}
		})
	}
	p.wake(calls)
	return len(p.woken) > 0
}

// retry tries the parked requests that were woken, as far as the budget of a pass allows.
func (r *round) retry(ctx context.Context) error {
	p := &r.p.l.parked
	for spent := 0; len(p.woken) > 0 && spent < retryBudget; {
		c := p.woken[0]
		p.woken = p.woken[1:]
		c.woken = false
		p.tried = append(p.tried, c)
		r.p.stats.Retried++
		spent += 1 + len(c.ask.Types)
		if err := r.serve(ctx, c, true); err != nil {
			return err
		}
	}
	return nil
}

// wakeTwins has parked requests tried that repeat one which was granted now.
func (p *parked) wakeTwins(c *requestCall) {
	if c.ask.RequestID == "" {
		return
	}
	var calls []*requestCall
	for r := range p.workers[c.holder()] {
		if r != c && r.ask.RequestID == c.ask.RequestID {
			calls = append(calls, r)
		}
	}
	p.wake(calls)
}
