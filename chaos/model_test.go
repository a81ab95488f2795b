package chaos

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"lessor"
)

// jobState is what the model knows of one job. That a lease lapses shows only in the answers that follow from it.
type jobState struct {
	exists bool
	id     string // "" = the answer that named it was lost
	fence  int64  // of the last lease that a caller saw
	holder string // the lease that may be alive; "" = no caller saw one
	by     string // the lease that completed it
	given  string // how leases were ended otherwise: a repeated call gets the same answer
}

// step returns the states that may follow from a call; none means that the call cannot have been answered so. A call
// whose answer was lost is applied if it can be: it has no end, so it may also stand behind all others.
func (s jobState) step(c call) []jobState {
	if c.answer == nothing {
		return []jobState{s}
	}
	if c.verb == lose {
		return s.older(strings.Fields(c.lease))
	}
	next, possible := s.apply(c)
	switch {
	case possible:
		return []jobState{next}
	case c.answer == unknown:
		return []jobState{s}
	}
	return nil
}

func (s jobState) apply(c call) (jobState, bool) {
	held := s.exists && s.holder == c.lease && s.by == ""
	if c.answer == refused && c.verb != read {
		return s.refuse(c)
	}
	switch c.verb {
	case submit:
		if c.answer == done && s.exists || c.answer == known && (!s.exists || s.id != "" && s.id != c.job) {
			return s, false
		}
		if s.exists = true; c.job != "" {
			s.id = c.job
		}
		return s, true
	case grant: // a request that is repeated by its id gets the same lease
		again := held && s.fence == c.fence
		possible := s.exists && s.by == "" && (s.id == "" || s.id == c.job) && (c.fence > s.fence || again)
		s.id, s.fence, s.holder = c.job, c.fence, c.lease
		return s, possible
	case beat:
		return s, held
	case complete:
		held = held || s.by == c.lease
		s.holder, s.by = "", c.lease
		return s, held
	case fail, release:
		if end := " " + string(c.verb) + c.lease; held {
			s.holder, s.given = "", s.given+end
		} else if !strings.Contains(s.given, end) {
			return s, false
		}
		return s, true
	case read:
		return s.read(c)
	}
	return s, false
}

// refuse is a call about a lease that is over. It stays over.
func (s jobState) refuse(c call) (jobState, bool) {
	if completed := c.reason == "completed"; completed != (s.by == c.lease) && (completed || c.reason != "") {
		return s, false
	}
	if s.holder == c.lease {
		s.holder = ""
	}
	return s, true
}

func (s jobState) read(c call) (jobState, bool) {
	switch {
	case c.answer == refused:
		return s, !s.exists
	case c.state == lessor.Completed:
		return s, s.by != ""
	case c.state == lessor.Leased || c.state == lessor.Running:
		return s, s.exists && s.by == ""
	}
	s.holder = "" // it waits: whatever lease it had is over
	return s, s.exists && s.by == ""
}

// older returns the states that a store which went back may have: any earlier one. What stays is the largest fence that
// a caller saw.
func (s jobState) older(leases []string) []jobState {
	gone, queued := jobState{fence: s.fence}, jobState{exists: s.exists, id: s.id, fence: s.fence}
	all := []jobState{s, gone, queued}
	for _, l := range leases {
		held, ended, given := queued, queued, queued
		held.holder, ended.by, given.given = l, l, s.given
		all = append(all, held, ended, given)
	}
	return all
}

// jobModel is the life of one job.
var jobModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{jobState{}} },
	Step: func(state, input, _ any) (next []any) {
		for _, s := range state.(jobState).step(input.(call)) {
			next = append(next, s)
		}
		return next
	},
	DescribeOperation: func(input, _ any) string { return input.(call).String() },
	DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
}

// byJob returns the calls about each job, oldest first.
func (h *history) byJob() map[string][]call {
	h.mu.Lock()
	defer h.mu.Unlock()
	jobs := map[string][]call{}
	for _, c := range h.calls {
		jobs[c.key] = append(jobs[c.key], c)
	}
	for key, calls := range jobs {
		var leases []string
		for _, c := range calls {
			if c.verb == grant {
				leases = append(leases, c.lease)
			}
		}
		calls = relevant(calls)
		for i, at := range h.lost {
			calls = append(calls, call{
				caller: -1 - i, key: key, verb: lose, begin: at[0], end: at[1], lease: strings.Join(leases, " "),
			})
		}
		slices.SortStableFunc(calls, func(a, b call) int { return int(a.begin - b.begin) })
		jobs[key] = calls
	}
	return jobs
}

// relevant leaves out the calls of one job that change nothing and prove nothing, which would make the search long:
// those that were not done, heartbeats without an answer, and all but the first of those that repeat a call without an
// answer.
func relevant(calls []call) (some []call) {
	type kind struct {
		verb  verb
		lease string
	}
	first := map[kind]time.Duration{}
	for _, c := range calls {
		if k := (kind{c.verb, c.lease}); c.answer == unknown && (first[k] == 0 || c.begin < first[k]) {
			first[k] = c.begin
		}
	}
	for _, c := range calls {
		lost := c.answer == unknown && (c.verb == beat || c.begin > first[kind{c.verb, c.lease}])
		if c.answer != nothing && !lost {
			some = append(some, c)
		}
	}
	return some
}

// linearizable checks that one order of each job's calls explains all of their answers.
func (h *history) linearizable(t *testing.T) {
	t.Helper()
	model, bad := jobModel.ToModel(), 0
	for key, calls := range h.byJob() {
		ops := make([]porcupine.Operation, len(calls))
		for i, c := range calls {
			ops[i] = porcupine.Operation{ClientId: i, Input: c, Call: int64(c.begin), Return: int64(c.end)}
			if c.answer == unknown {
				ops[i].Return = math.MaxInt64
			}
		}
		result := porcupine.CheckOperationsTimeout(model, ops, 10*time.Second)
		if result == porcupine.Ok {
			continue
		}
		if bad++; bad > 3 {
			continue
		}
		text := &strings.Builder{}
		for _, c := range calls {
			fmt.Fprintln(text, c)
		}
		t.Errorf("no order of the calls about job %s explains their answers (%s):\n%s", key, result, text)
	}
	if bad > 3 {
		t.Errorf("and of %d jobs more", bad-3)
	}
}

// TestModelKnowsGoodFromBad checks the model itself, with histories whose verdict is known.
func TestModelKnowsGoodFromBad(t *testing.T) {
	s := call{verb: submit, answer: done, job: "j"}
	g := func(lease string, fence int64) call {
		return call{verb: grant, answer: done, job: "j", lease: lease, fence: fence}
	}
	of := func(v verb, a answer, lease, reason string) call {
		return call{verb: v, answer: a, lease: lease, reason: reason}
	}
	for name, tt := range map[string]struct {
		good  bool
		calls []call
	}{
		"a life": {true, []call{
			s, g("a", 1), of(beat, known, "a", ""), of(complete, known, "a", ""),
		}},
		"a lease that lapsed": {true, []call{s, g("a", 1), g("b", 2), of(beat, refused, "a", "expired")}},
		"a lost completion": {true, []call{
			s, g("a", 1), of(complete, unknown, "a", ""), of(beat, refused, "a", "completed"),
		}},
		"a repeated release": {true, []call{
			s, g("a", 1), of(release, unknown, "a", ""), g("b", 2), of(release, known, "a", ""),
		}},
		"a release that never was": {false, []call{s, g("a", 1), g("b", 2), of(release, known, "a", "")}},
		"a repeated request":       {true, []call{s, g("a", 1), g("a", 1), of(complete, known, "a", "")}},
		"two jobs for one key":     {false, []call{s, s}},
		"another job for one key":  {false, []call{s, {verb: submit, answer: known, job: "k"}}},
		"a fence twice":            {false, []call{s, g("a", 1), g("b", 1)}},
		"a fence that goes back":   {false, []call{s, g("a", 2), g("b", 1)}},
		"a grant after the end":    {false, []call{s, g("a", 1), of(complete, known, "a", ""), g("b", 2)}},
		"two completions": {false, []call{
			s, g("a", 1), g("b", 2), of(complete, known, "a", ""), of(complete, known, "b", ""),
		}},
		"a lease that is over beats": {false, []call{
			s, g("a", 1), of(beat, refused, "a", "expired"), of(beat, known, "a", ""),
		}},
		"a lost acknowledged job": {false, []call{s, {verb: read, answer: refused}}},
		"a lost completion is queued": {false, []call{
			s, g("a", 1), of(complete, known, "a", ""), {verb: read, answer: known, state: lessor.Queued},
		}},
		"a forgotten lease completes": {false, []call{
			s, g("a", 1), of(release, known, "a", ""), of(complete, known, "a", ""),
		}},
		"a completion that never was": {false, []call{s, g("a", 1), of(beat, refused, "a", "completed")}},
		"a loss that is said": {true, []call{
			s, g("a", 1), of(complete, known, "a", ""), {verb: lose, lease: "a"}, g("b", 2),
		}},
		"a loss that reuses its fence": {false, []call{s, g("a", 1), {verb: lose, lease: "a"}, g("b", 1)}},
	} {
		h := newHistory()
		for i, c := range tt.calls {
			c.begin, c.end = time.Duration(2*i), time.Duration(2*i+1)
			h.add(c)
		}
		ops := []porcupine.Operation{}
		for _, c := range h.byJob()[""] {
			op := porcupine.Operation{Input: c, Call: int64(c.begin), Return: int64(c.end)}
			if c.answer == unknown {
				op.Return = math.MaxInt64
			}
			ops = append(ops, op)
		}
		if good := porcupine.CheckOperations(jobModel.ToModel(), ops); good != tt.good {
			t.Errorf("%s: good is %v, want %v", name, good, tt.good)
		}
	}
}
