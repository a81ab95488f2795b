package scheduler

import (
	"context"

	"lessor"
	"lessor/internal/rules"
)

// beatCall is one heartbeat, or a batch of them by one worker.
type beatCall struct {
	call
	caller Caller
	beats  []beat
	only   [1]beat // room for the beats of a single heartbeat
}

type beat struct {
	id     lessor.LeaseID
	job    lessor.JobID // of the lease, once it was extended
	ask    rules.BeatAsk
	answer lessor.HeartbeatAnswer
	// numbers are the numbers of the appended journal entries.
	numbers []int
	err     error
}

func (c *beatCall) size() int {
	n := 0
	for i := range c.beats {
		n += 100
		if r := c.beats[i].ask.Report; r != nil {
			n += len(r.Checkpoint)
		}
		for _, e := range c.beats[i].ask.Append {
			n += 100 + len(e.Data)
		}
		for j := range c.beats[i].ask.Output {
			n += len(c.beats[i].ask.Output[j].Data)
		}
	}
	return n
}

// Heartbeat keeps a lease alive; the first one turns its job from leased to running.
func (s *Scheduler) Heartbeat(
	ctx context.Context, c Caller, id lessor.LeaseID, h lessor.Heartbeat,
) (lessor.HeartbeatAnswer, error) {
	ask, err := rules.Heartbeat(&h)
	if err != nil {
		return lessor.HeartbeatAnswer{}, err
	}
	if ask.TTL != 0 {
		ask.TTL += s.cfg.Grace
	}
	b, err := s.beatOne(ctx, c, beat{id: id, ask: ask})
	return b.answer, err
}

func (s *Scheduler) beatOne(ctx context.Context, c Caller, b beat) (beat, error) {
	o := &beatCall{call: s.newCall(), caller: c, only: [1]beat{b}}
	o.beats = o.only[:]
	if err := s.do(ctx, &o.caller, o); err != nil {
		return beat{}, err
	}
	return o.only[0], s.explain(ctx, c, b.id, o.only[0].err)
}

// HeartbeatAll keeps many leases of one worker alive and returns one answer per lease, in the same order.
func (s *Scheduler) HeartbeatAll(
	ctx context.Context, c Caller, worker string, leaseIDs []string,
) ([]LeaseAnswer, error) {
	o, err := s.beatAll(c, worker, "lease_ids", leaseIDs)
	if err != nil {
		return nil, err
	}
	if err := s.do(ctx, &o.caller, o); err != nil {
		return nil, err
	}
	return s.beatAnswers(ctx, o, leaseIDs), nil
}

// beatAll checks a batch of heartbeats that is in the named field.
func (s *Scheduler) beatAll(c Caller, worker, field string, leaseIDs []string) (*beatCall, error) {
	if err := rules.BatchSize(field, len(leaseIDs)); err != nil {
		return nil, err
	}
	if _, err := rules.WorkerID(&worker); err != nil {
		return nil, err
	}
	o := &beatCall{call: s.newCall(), caller: c, beats: make([]beat, len(leaseIDs))}
	for i, text := range leaseIDs {
		o.beats[i] = beat{id: leaseID(text), ask: rules.BeatAsk{Worker: worker}}
	}
	return o, nil
}

// beatAnswers returns the answers to a batch of heartbeats.
func (s *Scheduler) beatAnswers(ctx context.Context, o *beatCall, leaseIDs []string) []LeaseAnswer {
	answers := make([]LeaseAnswer, len(leaseIDs))
	for i := range o.beats {
		answers[i] = LeaseAnswer{LeaseID: leaseIDs[i], Beat: o.beats[i].answer, Err: o.beats[i].err}
	}
	s.explainAll(ctx, o.caller, answers)
	return answers
}

// leaseID reads a lease id; an ill-formed one is the zero id, which no lease has.
func leaseID(text string) lessor.LeaseID {
	u, _ := lessor.ParseUUID(text) // ill-formed and unknown are answered alike
	return lessor.LeaseID{UUID: u}
}
