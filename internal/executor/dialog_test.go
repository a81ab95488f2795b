package executor

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lessor"
)

// answer waits until a job asks a question, and answers it.
func (b *bench) answer(id lessor.JobID, question, answer string) {
	b.t.Helper()
	j := b.awaitJob(id, "waiting for "+question, func(j lessor.Job) bool {
		return j.State == lessor.Waiting && j.Question.Text == question
	})
	if _, err := b.client.Answer(b.t.Context(), id, j.Question.ID, answer); err != nil {
		b.t.Fatal(err)
	}
}

// TestAskReturnsTheAnswer asks two questions. The command is run again from its beginning after each answer.
func TestAskReturnsTheAnswer(t *testing.T) {
	b := newBench(t, 5*time.Second)
	b.work(nil, `echo '{"step":1}' > "$LESSOR_CHECKPOINT_FILE"; echo x >> runs
		where=$("$LESSOR" ask 'Where?' here there) || exit 9
		when=$("$LESSOR" ask 'When?') || exit 9
		echo "\"$where $when\"" > "$LESSOR_RESULT_FILE"`)
	id := b.submit("{}")
	b.answer(id, "Where?", "there")
	b.answer(id, "When?", "now")
	j := b.awaitState(id, lessor.Completed)
	if strings.TrimSpace(string(j.Result)) != `"there now"` || j.Attempt != 1 || j.Interruptions != 0 ||
		string(j.Checkpoint) != `{"step":1}` {
		t.Errorf("result %s, checkpoint %s, attempt %d, %d interruptions; want both answers, step 1, 1 and 0", j.Result,
			j.Checkpoint, j.Attempt, j.Interruptions)
	}
	if runs := b.read(id, "runs"); strings.Count(runs, "x") != 3 {
		t.Errorf("the command ran %d times, want 3", strings.Count(runs, "x"))
	}
}

func TestCommandGoesOnAfterAQuestionThatCannotBeAsked(t *testing.T) {
	b := newBench(t, 5*time.Second)
	b.work(nil, `"$LESSOR" ask "$(head -c 8193 /dev/zero | tr '\0' '?')" 2> refusal && exit 9
		echo '"went on"' > "$LESSOR_RESULT_FILE"`)
	id := b.submit("{}")
	if j := b.awaitState(id, lessor.Completed); strings.TrimSpace(string(j.Result)) != `"went on"` || j.Attempt != 1 {
		t.Errorf("result %s in attempt %d, want \"went on\" in attempt 1", j.Result, j.Attempt)
	}
	if refusal := b.read(id, "refusal"); !strings.Contains(refusal, "1 to 8192 bytes long, not 8193") {
		t.Errorf("ask wrote %q, want the limit of a question", refusal)
	}
}

// TestAnswersFollowTheJobToAnotherMachine asks two questions, each on another machine, and ends on a third. No
// question is asked twice.
func TestAnswersFollowTheJobToAnotherMachine(t *testing.T) {
	b := newBench(t, 5*time.Second)
	script := `where=$("$LESSOR" ask 'Where?') || exit 9; when=$("$LESSOR" ask 'When?') || exit 9
		echo "\"$where $when\"" > "$LESSOR_RESULT_FILE"`
	id := b.submit("{}")
	for _, q := range []struct{ text, answer string }{{"Where?", "there"}, {"When?", "now"}} {
		stop := b.work(nil, script)
		b.awaitJob(id, "waiting for "+q.text, func(j lessor.Job) bool {
			return j.State == lessor.Waiting && j.Question.Text == q.text
		})
		stop()
		b.answer(id, q.text, q.answer)
		b.endShims()
		b.workspace = t.TempDir()
	}
	b.work(nil, script)
	if j := b.awaitState(id, lessor.Completed); strings.TrimSpace(string(j.Result)) != `"there now"` || j.Attempt != 1 {
		t.Errorf("result %s in attempt %d, want \"there now\" in attempt 1", j.Result, j.Attempt)
	}
}

// TestAnsweredQuestionIsNotReadAgain runs a command, after its answer, until the shim has checked the folder.
func TestAnsweredQuestionIsNotReadAgain(t *testing.T) {
	b := newBench(t, 5*time.Second)
	b.work(nil, `where=$("$LESSOR" ask 'Where?') || exit 9; "$LESSOR" progress 0.5 half
		until [ -e go ]; do sleep 0.02; done; echo "\"$where\"" > "$LESSOR_RESULT_FILE"`)
	id := b.submit("{}")
	b.answer(id, "Where?", "there")
	asksAgain := func(j lessor.Job) bool { return j.State == lessor.Waiting }
	b.awaitJob(id, "half done", func(j lessor.Job) bool { return j.Progress != nil || asksAgain(j) })
	if err := os.WriteFile(b.file(id, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j := b.awaitJob(id, "completed", func(j lessor.Job) bool { return j.State == lessor.Completed || asksAgain(j) })
	if asksAgain(j) || strings.TrimSpace(string(j.Result)) != `"there"` {
		t.Errorf("the job is %s with result %s, want it completed with the answer", j.State, j.Result)
	}
}

// TestUnansweredQuestionIsNotAskedAgain asks a question that is not answered in time, and then one that is.
func TestUnansweredQuestionIsNotAskedAgain(t *testing.T) {
	b := newBench(t, 5*time.Second)
	b.work(nil, `echo x >> runs; who=$("$LESSOR" ask '`+briefQuestion+`') || who=nobody
		when=$("$LESSOR" ask 'When?') || exit 9; echo "\"$who $when\"" > "$LESSOR_RESULT_FILE"`)
	id := b.submit("{}")
	b.answer(id, "When?", "now")
	j, runs := b.awaitState(id, lessor.Completed), b.read(id, "runs")
	if strings.TrimSpace(string(j.Result)) != `"nobody now"` || strings.Count(runs, "x") != 3 {
		t.Errorf("result %s after %d runs, want \"nobody now\" after 3", j.Result, strings.Count(runs, "x"))
	}
}

// TestMessageReachesTheCommandBeforeTheNextHeartbeat uses a lease whose heartbeats are minutes apart.
func TestMessageReachesTheCommandBeforeTheNextHeartbeat(t *testing.T) {
	b := newBench(t, 30*time.Minute)
	b.work(nil, `echo > begun; until grep -q hello "$LESSOR_MESSAGES_FILE"; do sleep 0.02; done`)
	id := b.submit("{}")
	b.awaitFile(id, "begun")
	b.awaitState(id, lessor.Running)
	if _, err := b.client.Message(t.Context(), id, "hello"); err != nil {
		t.Fatal(err)
	}
	b.awaitState(id, lessor.Completed)
}

// TestMarkupIsWrittenAsItIs sends markup as an answer and as a message. Scripts and models read the lines directly.
func TestMarkupIsWrittenAsItIs(t *testing.T) {
	b := newBench(t, 5*time.Second)
	b.work(nil, `"$LESSOR" ask 'Which?' > answer || exit 9
		echo > begun; until [ -s "$LESSOR_MESSAGES_FILE" ]; do sleep 0.02; done`)
	id := b.submit("{}")
	b.answer(id, "Which?", "<b> & <i>")
	b.awaitFile(id, "begun")
	if _, err := b.client.Message(t.Context(), id, "<p> & <q>"); err != nil {
		t.Fatal(err)
	}
	b.awaitState(id, lessor.Completed)
	if got := b.read(id, "answer"); got != "<b> & <i>" {
		t.Errorf("the command was answered %q, want the markup unchanged", got)
	}
	if got := b.read(id, messagesName); !strings.Contains(got, `"<p> & <q>"`) {
		t.Errorf("the file of messages has %s, want the markup unchanged", got)
	}
	journal, _, err := b.client.Journal(t.Context(), id, 10, "")
	if err != nil || len(journal) != 1 || string(journal[0].Data) != `"<b> & <i>"` {
		t.Errorf("the journal has %+v, %v; want one entry with the markup unchanged", journal, err)
	}
}

// TestMessagesReachTheCommandOnce sends messages to a command whose shim is killed several times. The file of messages
// has each of them once, in order.
func TestMessagesReachTheCommandOnce(t *testing.T) {
	all, kills := 600, 3
	if os.Getenv("LESSOR_CHAOS") == "full" {
		all = 10_000
	}
	b := newBench(t, time.Second)
	b.work(nil, fmt.Sprintf(`echo $PPID > shim.new; mv shim.new shim
		while [ "$(wc -l < "$LESSOR_MESSAGES_FILE")" -lt %d ]; do sleep 0.05; done`, all))
	id := b.submit("{}")
	var sender sync.WaitGroup
	defer sender.Wait()
	over := make(chan struct{})
	endKills := sync.OnceFunc(func() { close(over) })
	defer endKills()
	sender.Go(func() {
		for n := 1; n <= all; {
			if n == all {
				<-over // the command waits for this message, so that it does not end before the last kill
			}
			_, err := b.client.Message(t.Context(), id, fmt.Sprint("number ", n))
			switch {
			case err == nil:
				n++
			case lessor.CodeOf(err) == lessor.CodeConflict:
				time.Sleep(10 * time.Millisecond) // a job keeps at most a thousand unread messages
			default:
				t.Error(err)
				return
			}
		}
	})
	last := ""
	for kill := range kills {
		lines := all * (kill + 1) / (kills + 2)
		await(t, fmt.Sprint(lines, " messages"), func() bool {
			return strings.Count(b.read(id, messagesName), "\n") >= lines && b.read(id, "shim") != last
		})
		last = b.read(id, "shim")
		pid, err := strconv.Atoi(strings.TrimSpace(last))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	endKills()
	if j := b.awaitState(id, lessor.Completed); j.Attempt != kills+1 {
		t.Errorf("completed in attempt %d, want %d", j.Attempt, kills+1)
	}
	for i, line := range strings.Split(strings.TrimSpace(b.read(id, messagesName)), "\n") {
		var m lessor.Message
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Seq != int64(i+1) ||
			m.Text != fmt.Sprint("number ", i+1) {
			t.Fatalf("line %d is %q (%v), want message %[1]d", i+1, line, err)
		}
	}
}

// TestBrokenMessagesAreSetAside runs a command whose first attempt spoils its file of messages. The next attempt has
// a new one, and gets the messages that came since.
func TestBrokenMessagesAreSetAside(t *testing.T) {
	for name, spoil := range map[string]string{
		"no JSON":    `echo oops >> "$LESSOR_MESSAGES_FILE"`,
		"other name": `ln "$LESSOR_MESSAGES_FILE" other`,
		"folder":     `rm messages.jsonl; mkdir -p messages.jsonl/x`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 5*time.Second)
			b.work(nil, `if [ "$LESSOR_ATTEMPT" = 1 ]; then `+spoil+`; exit 1; fi
				echo > begun; while ! grep -q hello "$LESSOR_MESSAGES_FILE"; do sleep 0.02; done`)
			id := b.submit("{}")
			await(t, "the second attempt", func() bool {
				return b.read(id, "begun") != "" || b.countEntries(id, lessor.ReleaseCannotStart) > 0
			})
			if n := b.countEntries(id, lessor.ReleaseCannotStart); n > 0 {
				t.Fatalf("the job was given back %d times, want that its second attempt runs", n)
			}
			if _, err := b.client.Message(t.Context(), id, "hello"); err != nil {
				t.Fatal(err)
			}
			if j := b.awaitState(id, lessor.Completed); j.Attempt != 2 {
				t.Errorf("completed in attempt %d, want 2", j.Attempt)
			}
			if _, err := os.Lstat(b.file(id, brokenMessagesName)); err != nil {
				t.Errorf("the old file of messages is not there: %v", err)
			}
		})
	}
}

// TestWarningsMayComeTogether: the shim cannot write messages, because the disk is full, while it warns of a checkpoint
// that is too large. The race detector finds a shim that does both without a lock.
func TestWarningsMayComeTogether(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	var log logBuffer
	s := &shim{folder: makeJobFolder(t), log: slog.New(slog.NewTextHandler(&log, nil)), ask: make(chan struct{}, 1)}
	s.messages.file = full
	if err := s.folder.WriteFile(checkpointName, make([]byte, lessor.MaxCheckpoint+1)); err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	both.Go(s.readUpdates) // as watch does
	both.Go(func() { s.receive([]lessor.Message{{Seq: 1, Text: "hello"}}) })
	both.Wait()
	if log.count("what=messages") != 1 || log.count(`what="a checkpoint"`) != 1 {
		t.Errorf("the log is %q, want a warning of each", log.all.String())
	}
}
