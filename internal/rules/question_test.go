package rules

import (
	"strings"
	"testing"
	"time"

	"lessor"
)

// words returns a text of n bytes.
func words(n int) *string { return new(strings.Repeat("?", n)) }

// TestCheckQuestionAgreesWithTheServer compares the check that workers make with the one that refuses a completion.
func TestCheckQuestionAgreesWithTheServer(t *testing.T) {
	year := lessor.MaxAsked
	for name, c := range map[string]struct {
		text    string
		choices []string
		within  time.Duration
		ok      bool
	}{
		"longest text":      {*words(lessor.MaxDialog), nil, time.Hour, true},
		"text too long":     {*words(lessor.MaxDialog + 1), nil, time.Hour, false},
		"empty text":        {"", nil, time.Hour, false},
		"text with NUL":     {"a\x00b", nil, time.Hour, false},
		"text not in UTF-8": {"a\xff", nil, time.Hour, false},
		"most choices":      {"?", make21()[:20], time.Hour, true},
		"too many choices":  {"?", make21(), time.Hour, false},
		"empty choice":      {"?", []string{""}, time.Hour, false},
		"longest choice":    {"?", []string{strings.Repeat("ü", lessor.MaxChoice)}, time.Hour, true},
		"choice too long":   {"?", []string{*words(lessor.MaxChoice + 1)}, time.Hour, false},
		"choice with NUL":   {"?", []string{"a\x00b"}, time.Hour, false},
		"a year":            {"?", nil, year, true},
		"over a year":       {"?", nil, year + time.Second, false},
	} {
		_, refusal := Completion(&lessor.Completion{
			WorkerID: new("w1"), Status: new("waiting"), Question: &lessor.Asking{Text: &c.text, Choices: c.choices},
			ExpiresInS: new(int64(c.within / time.Second)),
		}, "")
		if err := lessor.CheckQuestion(c.text, c.choices, c.within); (err == nil) != c.ok || (refusal == nil) != c.ok {
			t.Errorf("%s: the worker says %v, the server %v", name, err, refusal)
		}
	}
}

func TestQuestionOfACompletion(t *testing.T) {
	ask := func(edit func(*lessor.Completion)) lessor.Completion {
		d := lessor.Completion{
			WorkerID: new("w1"), Status: new("waiting"),
			Question: &lessor.Asking{Text: new("Deploy?"), Choices: []string{"yes", "no"}},
		}
		edit(&d)
		return d
	}
	for name, c := range map[string]struct {
		edit func(*lessor.Completion)
		code lessor.Code
	}{
		"asked":        {func(*lessor.Completion) {}, ""},
		"longest text": {func(d *lessor.Completion) { d.Question.Text = words(8 << 10) }, ""},
		"too long": {
			func(d *lessor.Completion) { d.Question.Text = words(8<<10 + 1) }, lessor.CodeInvalidValue,
		},
		"empty":            {func(d *lessor.Completion) { d.Question.Text = new("") }, lessor.CodeInvalidValue},
		"without text":     {func(d *lessor.Completion) { d.Question.Text = nil }, lessor.CodeInvalidRequest},
		"without question": {func(d *lessor.Completion) { d.Question = nil }, lessor.CodeInvalidRequest},
		"most choices":     {func(d *lessor.Completion) { d.Question.Choices = make21()[:20] }, ""},
		"too many choices": {func(d *lessor.Completion) { d.Question.Choices = make21() }, lessor.CodeInvalidValue},
		"empty choice":     {func(d *lessor.Completion) { d.Question.Choices = []string{""} }, lessor.CodeInvalidValue},
		"shortest wait":    {func(d *lessor.Completion) { d.ExpiresInS = new(int64(1)) }, ""},
		"no wait":          {func(d *lessor.Completion) { d.ExpiresInS = new(int64(0)) }, lessor.CodeInvalidValue},
		"a year":           {func(d *lessor.Completion) { d.ExpiresInS = new(int64(365 * 86400)) }, ""},
		"over a year": {
			func(d *lessor.Completion) { d.ExpiresInS = new(int64(31_536_001)) }, lessor.CodeInvalidValue,
		},
		"of a completed": {func(d *lessor.Completion) { d.Status = new("completed") }, lessor.CodeInvalidValue},
		"expiry, completed": {func(d *lessor.Completion) {
			d.Status, d.Question, d.ExpiresInS = new("completed"), nil, new(int64(9))
		}, lessor.CodeInvalidValue},
	} {
		d := ask(c.edit)
		e, err := Completion(&d, "")
		if c.code != "" {
			refused(t, err, c.code)
			continue
		}
		if err != nil || e.Question == nil || e.Outcome != OutcomeWaiting || e.Delay <= 0 {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	first, other := ask(func(*lessor.Completion) {}), ask(func(d *lessor.Completion) { d.Question.Choices = nil })
	a, _ := Completion(&first, "")
	b, _ := Completion(&other, "")
	if a.Said == b.Said {
		t.Error("two questions are remembered as the same call")
	}
}

func make21() []string { return strings.Split(strings.Repeat("x,", 20)+"x", ",") }

func TestAnswer(t *testing.T) {
	h := lease(func(*Held) {})
	end := ends["asked"]
	next, err := Conclude(h, end, usual, start, 0.5)
	if err != nil || next.Turn.Attempt != h.Turn.Attempt-1 || next.Turn.Interruptions != h.Turn.Interruptions {
		t.Fatalf("a question costs an attempt or an interruption: %+v, %v", next, err)
	}
	q := Asked(h, end, start)
	waiting := func() *Standing {
		return &Standing{
			Spec: &Spec{ID: h.Turn.Job, Payload: []byte("{}")}, Place: Delayed, Turn: next.Turn, Wait: next.Wait,
			Report: &Report{Question: q},
		}
	}
	answered := *q
	answered.Answer = new("yes")
	const yes, no, maybe = "yes", "no", "maybe"
	in := func(p Place, q *lessor.Question) *Standing {
		s := waiting()
		s.Place, s.Report = p, &Report{Question: q}
		return s
	}
	for name, c := range map[string]struct {
		standing *Standing
		id       string
		answer   string
		at       lessor.Instant
		code     lessor.Code
		moves    bool
	}{
		"in time":      {waiting(), q.ID.String(), yes, after(time.Second), "", true},
		"just in time": {waiting(), q.ID.String(), no, after(5*time.Second - time.Millisecond), "", true},
		"too late":     {waiting(), q.ID.String(), no, after(5 * time.Second), lessor.CodeConflict, false},
		"no such choice": {
			waiting(), q.ID.String(), maybe, after(time.Second), lessor.CodeInvalidValue, false,
		},
		"an older question":         {waiting(), lessor.QuestionID{}.String(), yes, start, lessor.CodeConflict, false},
		"no id":                     {waiting(), "x", yes, start, lessor.CodeConflict, false},
		"asks nothing":              {in(InQueue, nil), q.ID.String(), yes, start, lessor.CodeConflict, false},
		"the same again":            {in(InQueue, &answered), q.ID.String(), yes, after(time.Hour), "", false},
		"the same again at the end": {in(InQueue, &answered), q.ID.String(), yes, after(time.Hour), "", false},
		"another answer":            {in(InQueue, &answered), q.ID.String(), no, start, lessor.CodeConflict, false},
		"unanswered and gone on":    {in(InQueue, q), q.ID.String(), yes, start, lessor.CodeConflict, false},
	} {
		a := lessor.Answer{QuestionID: &c.id, Answer: &c.answer}
		ch, err := Answer(c.standing, &a, "olga", c.at)
		if c.code != "" {
			refused(t, err, c.code)
			continue
		}
		if err != nil || (ch.Next != nil) != c.moves {
			t.Errorf("%s: %+v, %v", name, ch, err)
		}
		if c.moves && (ch.Next.Place != InQueue || *ch.Question.Answer != c.answer ||
			*ch.Question.AnsweredBy != "olga") {
			t.Errorf("%s: %+v", name, ch)
		}
	}
	if q.Answer != nil {
		t.Error("the question that was loaded has changed")
	}
	s := waiting()
	if _, err := Retry(s, "olga", after(time.Second)); err == nil {
		t.Error("a job that waits for an answer was retried")
	}
	if j := Show(s); j.State != "waiting" || j.RetryAt != 0 || j.Question.ExpiresAt != after(5*time.Second) {
		t.Errorf("a waiting job shows %s, retry at %s, %+v", j.State, j.RetryAt, j.Question)
	}
	if why := Why(WhyInputs{Standing: s}, true); len(why) != 1 || why[0].Code != "waiting_answer" {
		t.Errorf("why: %+v", why)
	}
}

func TestSend(t *testing.T) {
	queued := func(r *Report) *Standing { return &Standing{Spec: &Spec{}, Place: InQueue, Report: r} }
	known := func(text string) *Message {
		return &Message{Key: "k", Message: lessor.Message{Seq: 4, Text: text, SentBy: "olga"}}
	}
	ended := &Standing{Place: Ended, Done: &Done{State: "completed"}}
	for name, c := range map[string]struct {
		standing *Standing
		known    *Message
		seq      int64
		code     lessor.Code
	}{
		"first":           {queued(nil), nil, 1, ""},
		"next":            {queued(&Report{Sent: 7, Seen: 7}), nil, 8, ""},
		"one less waits":  {queued(&Report{Sent: 7, Seen: 5}), nil, 8, ""},
		"as many as fit":  {queued(&Report{Sent: 7, Seen: 4}), nil, 0, lessor.CodeConflict},
		"ended":           {ended, nil, 0, lessor.CodeConflict},
		"held is as good": {&Standing{Spec: &Spec{}, Place: Leased}, nil, 1, ""},
		"repeated":        {queued(&Report{Sent: 7, Seen: 4}), known("hello"), 4, ""},
		"repeated late":   {ended, known("hello"), 4, ""},
		"another text":    {queued(nil), known("bye"), 0, lessor.CodeConflict},
	} {
		m, err := Send(c.standing, c.known, Message{Key: "k", Message: lessor.Message{Text: "hello", SentBy: "olga"}},
			Inbox{Unread: Unread(c.standing.Report), Limit: 3}, start, Serving{})
		if c.code != "" {
			refused(t, err, c.code)
		} else if err != nil || m.Seq != c.seq || m.SentBy != "olga" || m.Key != "k" {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}
