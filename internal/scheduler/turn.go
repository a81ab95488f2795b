package scheduler

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

// turnCall is a call with several parts: ends, heartbeats and a request of one worker. One commit does all of them.
// Each part is answered for itself, because a request may wait longer.
type turnCall struct {
	parts []op
}

func (t *turnCall) base() *call { return t.parts[0].base() }

func (t *turnCall) size() (n int) {
	for _, part := range t.parts {
		n += part.size()
	}
	return n
}

func (t *turnCall) add(part op) {
	part.base().part = true
	t.parts = append(t.parts, part)
}

// TurnAnswer has the answer to each part of a turn as the call for that part alone would have it.
type TurnAnswer struct {
	Complete, Heartbeat []LeaseAnswer
	Grants              []lessor.Grant
	Denial              *lessor.Denial // set if there was a request and nothing was granted
}

// Turn ends attempts of a worker, keeps leases of it alive, and requests others, in one commit. If a part is not
// well-formed, nothing happens. A request that waits delays the answer, but not the other parts.
func (s *Scheduler) Turn(ctx context.Context, c Caller, t lessor.Turn) (answer TurnAnswer, err error) {
	worker, err := rules.WorkerTurn(&t)
	if err != nil {
		return answer, err
	}
	var ends *endCall
	var beats *beatCall
	var request *requestCall
	var turn turnCall
	if len(t.Complete) > 0 {
		if ends, err = s.endAll(c, worker, "complete", t.Complete); err != nil {
			return answer, err
		}
		turn.add(ends)
	}
	if len(t.Heartbeat) > 0 {
		if beats, err = s.beatAll(c, worker, "heartbeat", t.Heartbeat); err != nil {
			return answer, err
		}
		turn.add(beats)
	}
	if t.Request != nil {
		if request, err = s.ask(ctx, c, t.Request.By(&worker), "request."); err != nil {
			return answer, err
		}
		turn.add(request)
	}
	if err := s.commitTurn(ctx, &c, &turn); err != nil {
		return answer, err
	}
	if ends != nil {
		answer.Complete = s.allEnded(ctx, ends, t.Complete)
	}
	if beats != nil {
		answer.Heartbeat = s.beatAnswers(ctx, beats, t.Heartbeat)
	}
	if request != nil {
		answer.Grants, answer.Denial = request.result()
	}
	return answer, nil
}

// commitTurn puts a turn into the next batch and waits for the answers to all of its parts.
func (s *Scheduler) commitTurn(ctx context.Context, from *Caller, t *turnCall) error {
	if err := s.put(from, t); err != nil {
		return err
	}
	var first error
	for _, part := range t.parts {
		if err := s.wait(ctx, part); first == nil {
			first = err
		}
	}
	return first
}
