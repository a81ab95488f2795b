package worker

import (
	"context"
	"slices"
	"time"

	"lessor"
)

// rush is the time in which there is more work than workers: the last request got all that it asked for. The worker
// then sends its completions together with the next request, in one call and one commit, and has two such turns on
// their way, so that server and worker both have something to do. It waits until a third of its places is free, but
// no longer than a quarter of what a turn takes, so that single jobs are not delayed. Guarded by Worker.mu.
type rush struct {
	on   bool
	took time.Duration // by the last turn
	old  bool          // the server is of a release that knows neither turns nor views
	over bool          // the worker stops
}

// The bounds of the wait for free places.
const (
	rushShare  = 3
	rushLinger = 4
	rushWait   = 5 * time.Millisecond
)

// setRushLocked begins or ends the rush. Without one the finishing loop sends the completions.
func (w *Worker) setRushLocked(on bool) {
	if on = on && !w.rush.old && !w.rush.over; on == w.rush.on {
		return
	}
	w.rush.on = on
	poke(w.ending)
	w.notifyLocked() // the second loop may begin
}

// nextLocked returns what to request now, and reserves the places for it instead of those of a request that was not
// answered. It reports false if it is not time for a request: late says that the worker has waited long enough for more
// free places. The second loop requests in a rush, and repeats without waiting what was not answered.
func (w *Worker) nextLocked(unanswered query, wide, second, late bool) (query, bool) {
	w.reserveLocked(unanswered, -unanswered.most)
	q := w.roomLocked(wide)
	if q.most == 0 && w.asked == 0 {
		w.setRushLocked(false)
	}
	if q.turn = w.rush.on; q.turn || second {
		q.wait = 0
	}
	q.view = !w.rush.old
	few := q.turn && !late && q.most < w.cfg.Concurrency/rushShare
	if q.most == 0 || unanswered.most == 0 && (few || second && !q.turn) {
		w.reserveLocked(unanswered, unanswered.most)
		return q, false
	}
	w.reserveLocked(q, q.most)
	return q, true
}

// reserveLocked keeps n places for the answer to q; a negative n frees them.
func (w *Worker) reserveLocked(q query, n int) {
	w.asked += n
	for _, name := range q.types {
		w.handlers[name].asked += n
	}
}

// endRush ends the rush for good, and frees the places of a request that is not repeated any more.
func (w *Worker) endRush(unanswered query) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reserveLocked(unanswered, -unanswered.most)
	w.rush.over = true
	w.setRushLocked(false)
	w.notifyLocked() // the other loop has more room
}

// isOld notes that the server knows neither turns nor views, if err, the answer to q, says so. Both loops can get
// this answer.
func (w *Worker) isOld(q query, err error) bool {
	code := lessor.CodeOf(err)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !q.turn && !q.view || code != lessor.CodeRouteNotFound && code != lessor.CodeInvalidRequest {
		return false
	}
	w.rush.old = true
	w.setRushLocked(false)
	return true
}

// turn sends a request together with the completions that are ready.
func (w *Worker) turn(ctx context.Context, r lessor.LeaseRequest) ([]lessor.Grant, *lessor.Denial, error) {
	ends, _ := w.takeEnds(func(l *lease) bool { return !l.end.single() })
	began := time.Now()
	a, err := w.cfg.Client.Turn(ctx, lessor.Turn{
		WorkerID: &w.cfg.ID, Complete: completions(ends), Request: &lessor.TurnRequest{
			Types: r.Types, MaxLeases: r.MaxLeases, RequestID: r.RequestID, TTLMS: r.TTLMS, View: r.View,
		},
	})
	if err == nil && len(a.Complete) != len(ends) {
		err = errAnswers
	}
	var again []*lease
	if err != nil {
		again = ends
	} else {
		for i, l := range ends {
			again = w.ended(again, l, a.Complete[i].Err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends, w.rush.took = slices.Concat(again, w.ends), time.Since(began)
	if len(again) > 0 && !w.rush.on {
		poke(w.ending) // the rush ended while the turn was on its way
	}
	return a.Grants, a.Denial, err
}
