package agent

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"lessor/internal/plainjson"
	"lessor/worker"
)

// The kinds of the entries by which a run can be continued.
const (
	kindBegin  = "agent.begin"  // the turns that the run began with
	kindAnswer = "agent.answer" // an answer of the model
	kindCall   = "agent.call"   // a tool call that begins
	kindResult = "agent.result" // what the model was told about the call
	kindPart   = "agent.part"   // a part of an entry that is too large for one
)

const (
	// partSize is how many bytes fit into one entry, as base64.
	partSize = 45 << 10
	// recordGrace is how long an entry may still be appended after the run was stopped: what is not recorded is done
	// again, or has an unknown outcome.
	recordGrace = 5 * time.Second
)

// record is the journal of one run. Without a journal it keeps nothing.
type record struct {
	journal *worker.Journal
	run     string                     // of this run among those of the job; the beginning of its keys
	entries map[string]json.RawMessage // what earlier attempts have recorded
}

// openRecord reads what earlier attempts have recorded of the next run of this job.
func openRecord(ctx context.Context, j *worker.Journal) (*record, error) {
	if j == nil {
		return &record{}, nil
	}
	r := &record{journal: j, run: j.Part("agent") + "/", entries: map[string]json.RawMessage{}}
	entries, err := j.Entries(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the run so far: %w", err)
	}
	for _, e := range entries {
		r.entries[e.Key] = e.Data
	}
	return r, nil
}

// content is the data of an entry: a value, or the keys of the entries that hold its parts.
type content struct {
	Value json.RawMessage `json:"value,omitempty"`
	Parts []string        `json:"parts,omitempty"`
}

// find decodes what was recorded under a key, and reports whether there is something.
func (r *record) find(key string, into any) (bool, error) {
	raw, ok := r.entries[r.run+key]
	if !ok {
		return false, nil
	}
	var c content
	err := json.Unmarshal(raw, &c)
	for _, key := range c.Parts {
		var part []byte
		if err == nil {
			err = json.Unmarshal(r.entries[key], &part)
		}
		c.Value = append(c.Value, part...)
	}
	if err == nil {
		err = json.Unmarshal(c.Value, into)
	}
	if err != nil {
		return false, fmt.Errorf("decode journal entry %s: %w", r.run+key, err)
	}
	return true, nil
}

// keep records a value. It goes on for recordGrace after ctx is done.
func (r *record) keep(ctx context.Context, key, kind string, v any) error {
	if r.journal == nil {
		return nil
	}
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		timer := time.NewTimer(recordGrace)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-lasting.Done():
		}
	})()
	raw, err := plainjson.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode journal entry: %w", err)
	}
	c := content{Value: raw}
	if len(raw) > partSize {
		c.Value = nil
		for part := range slices.Chunk(raw, partSize) {
			// Another attempt may have written parts of another value before it was cut off.
			name := fmt.Sprintf("%s%s/%s", r.run, key, rand.Text())
			if err := r.journal.Append(lasting, name, kindPart, part); err != nil {
				return err
			}
			c.Parts = append(c.Parts, name)
		}
	}
	return r.journal.Append(lasting, r.run+key, kind, c)
}

// savedTurn is a turn in the journal. Arguments are text there, because they may be invalid JSON.
type savedTurn struct {
	Role   Role        `json:"role"`
	Text   string      `json:"text"`
	Calls  []savedCall `json:"calls,omitempty"`
	CallID string      `json:"call_id,omitempty"`
}

type savedCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type savedReply struct {
	Text  string      `json:"text"`
	Calls []savedCall `json:"calls,omitempty"`
	Usage Usage       `json:"usage"`
}

func saveCalls(calls []ToolCall) (saved []savedCall) {
	for _, c := range calls {
		saved = append(saved, savedCall{c.ID, c.Name, string(c.Arguments)})
	}
	return saved
}

func restoreCalls(saved []savedCall) (calls []ToolCall) {
	for _, c := range saved {
		calls = append(calls, ToolCall{c.ID, c.Name, json.RawMessage(c.Arguments)})
	}
	return calls
}

// begin returns the turns that the run began with, in whichever attempt that was: a run goes on with the prompt that it
// has, also after a deploy that changed it.
func (r *record) begin(ctx context.Context, turns []Turn) ([]Turn, error) {
	var saved []savedTurn
	if found, err := r.find("begin", &saved); found || err != nil {
		turns = make([]Turn, 0, len(saved))
		for _, t := range saved {
			turns = append(turns, Turn{t.Role, t.Text, restoreCalls(t.Calls), t.CallID})
		}
		return turns, err
	}
	for _, t := range turns {
		saved = append(saved, savedTurn{t.Role, t.Text, saveCalls(t.Calls), t.CallID})
	}
	return slices.Clone(turns), r.keep(ctx, "begin", kindBegin, saved)
}

// answer returns the n-th answer of the model, and asks for it if it is not recorded.
func (r *record) answer(ctx context.Context, n int, ask func() (Reply, error)) (Reply, error) {
	key := fmt.Sprintf("%d/answer", n)
	var saved savedReply
	if found, err := r.find(key, &saved); found || err != nil {
		return Reply{saved.Text, restoreCalls(saved.Calls), saved.Usage}, err
	}
	reply, err := ask()
	if err != nil {
		return reply, err
	}
	return reply, r.keep(ctx, key, kindAnswer, savedReply{reply.Text, saveCalls(reply.Calls), reply.Usage})
}

// call returns the result of a tool call, and runs it if none is recorded. A call that began in an earlier attempt and
// has no result is uncertain: it is for again, which is told how often the call was cut off, and can return
// ErrRunAgain. An error of a call leaves it without a result.
func (r *record) call(
	ctx context.Context, key string, call ToolCall, run func() (string, error), again func(cuts int) (string, error),
) (string, error) {
	var text string
	if found, err := r.find(key+"/result", &text); found || err != nil {
		return text, err
	}
	var begun savedCall
	uncertain, err := r.find(key+"/call", &begun)
	if err != nil {
		return "", err
	}
	begin := key + "/call"
	if uncertain {
		text, begin, err = r.again(key, again)
	}
	if !uncertain || errors.Is(err, ErrRunAgain) {
		if err := r.keep(ctx, begin, kindCall, saveCalls([]ToolCall{call})[0]); err != nil {
			return "", err
		}
		text, err = run()
	}
	if err != nil {
		return "", err
	}
	return text, r.keep(ctx, key+"/result", kindResult, text)
}

// again answers a call that is uncertain, and returns the key under which it begins once more.
func (r *record) again(key string, answer func(cuts int) (string, error)) (text, begin string, err error) {
	for cuts := 1; ; cuts++ {
		begin = fmt.Sprintf("%s/call/%d", key, cuts+1)
		if _, cut := r.entries[r.run+begin]; !cut {
			text, err = answer(cuts)
			return text, begin, err
		}
	}
}
