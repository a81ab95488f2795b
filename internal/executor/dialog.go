package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strings"
	"time"

	"lessor"
	"lessor/internal/plainjson"
	"lessor/internal/sentinel"
)

const (
	// askName is the question of the command, answersName what people answered to its questions, by their keys in
	// the journal; null = nobody answered in time.
	askName     = ".ask"
	answersName = ".answers.json"
	// messagesName has a line for each message to the job, and keeps those of earlier attempts.
	messagesName = "messages.jsonl"
	// brokenMessagesName is a file of messages that could not be continued.
	brokenMessagesName = "messages.jsonl.broken"
	// maxMessages bounds that file. A command that is sent more has stopped listening; the server keeps the rest.
	maxMessages = 64 << 20
	// maxAnswers bounds the other two: a hundred questions with their answers, escaped.
	maxAnswers = 100 * 2 * 6 * lessor.MaxDialog
)

var (
	// ErrUnanswered means that nobody answered a question within its time.
	ErrUnanswered = errors.New("nobody answered the question in time")
	// ErrBadQuestion means that the question is not asked because the server would refuse it.
	ErrBadQuestion = errors.New("the question is not asked")
	errAsked       = errors.New("the command asks a question")
)

// asking is the content of askName.
type asking struct {
	Question   lessor.Asking `json:"question"`
	ExpiresInS *int64        `json:"expires_in_s,omitempty"`
}

// Ask returns the answer to a question of the job, or ErrUnanswered. If the question was not asked before, the shim
// ends the command, and Ask returns when that happens or ctx is done. A question that the server would refuse returns
// ErrBadQuestion, and the command goes on.
func Ask(ctx context.Context, f *sentinel.Folder, text string, choices []string, within time.Duration) (string, error) {
	answers, err := readAnswers(f)
	if err != nil {
		return "", err
	}
	switch answer, asked := answers[lessor.AnswerKey(text)]; {
	case answer != nil:
		return *answer, nil
	case asked:
		return "", ErrUnanswered
	}
	if err := lessor.CheckQuestion(text, choices, within); err != nil {
		return "", fmt.Errorf("%w: %w", ErrBadQuestion, err)
	}
	a := asking{Question: lessor.Asking{Text: &text, Choices: choices}}
	if within > 0 {
		a.ExpiresInS = new(max(1, int64(within/time.Second)))
	}
	data, err := json.Marshal(a)
	if err != nil {
		return "", fmt.Errorf("encode the question: %w", err)
	}
	if err := f.WriteFile(askName, data); err != nil {
		return "", err
	}
	<-ctx.Done()
	return "", context.Cause(ctx)
}

func readAnswers(f *sentinel.Folder) (map[string]*string, error) {
	data, err := f.ReadFile(answersName, maxAnswers)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]*string{}, nil
	}
	var answers map[string]*string
	if err == nil {
		err = json.Unmarshal(data, &answers)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("read earlier answers: %w", err)
	case answers == nil: // null
		answers = map[string]*string{}
	}
	return answers, nil
}

// recordAnswer adds the answer that came with the grant to the job's journal, which keeps it when the next answer
// comes, and returns all answers of the job.
func (s *shim) recordAnswer(ctx context.Context) (map[string]*string, error) {
	job, lease, answers := s.order.Grant.Job, s.order.Grant.Lease, map[string]*string{}
	if job.JournalEntries > 0 {
		for e, err := range s.client.AllJournal(ctx, job.ID) {
			if err != nil {
				return nil, fmt.Errorf("read earlier answers: %w", err)
			}
			var answer *string
			if strings.HasPrefix(e.Key, lessor.AnswerKeyPrefix) && json.Unmarshal(e.Data, &answer) == nil {
				answers[e.Key] = answer
			}
		}
	}
	q := job.Question
	if q == nil {
		return answers, nil
	}
	key := lessor.AnswerKey(q.Text)
	if _, recorded := answers[key]; recorded {
		return answers, nil
	}
	data, err := plainjson.Marshal(q.Answer)
	if err != nil {
		return nil, err
	}
	answers[key] = q.Answer
	_, err = s.client.Append(ctx, lease.ID, lessor.JournalAppend{
		WorkerID: &lease.WorkerID, Entries: []lessor.JournalAsk{{Key: &key, Kind: new("answer"), Data: data}},
	})
	if isRefused(err) {
		s.log.Warn("an attempt on another machine will not find the answer", "error", err)
		return answers, nil
	}
	return answers, err
}

// keepAnswers adds answers to those in the folder, where Ask finds them without a server.
func (s *shim) keepAnswers(answers map[string]*string) error {
	if len(answers) == 0 {
		return nil
	}
	kept, err := readAnswers(s.folder)
	if err != nil {
		s.log.Warn("answers in the folder are lost", "error", err)
		kept = map[string]*string{}
	}
	maps.Copy(kept, answers)
	data, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	return s.folder.WriteFile(answersName, data)
}

// readQuestion stops the command if it has asked a question.
func (s *shim) readQuestion() {
	data, err := s.folder.ReadFile(askName, maxAnswers)
	if errors.Is(err, fs.ErrNotExist) || s.question != nil {
		return
	}
	var a asking
	if err == nil {
		err = json.Unmarshal(data, &a)
	}
	if err != nil {
		s.warnOnce("a question", err)
		return
	}
	s.question = &a
	s.stop(errAsked)
}

// messages is the open file of messages.
type messages struct {
	file *os.File
	last int64 // the number of the last message in it
	size int64
}

// openMessages opens the file of messages and finds the last one. It sets a file that cannot be continued aside and
// begins a new one.
func (s *shim) openMessages() error {
	data, last, err := s.readMessages()
	if bad, ok := errors.AsType[*sentinel.InvalidError](err); ok && bad.Reason != sentinel.Unreadable {
		s.log.Warn("messages of earlier attempts are set aside", "file", brokenMessagesName, "error", err)
		data, last = nil, 0
		err = os.Rename(s.folder.Join(messagesName), s.folder.Join(brokenMessagesName))
	}
	if err != nil {
		return err
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	if len(whole) < len(data) {
		if err := s.folder.WriteFile(messagesName, whole); err != nil {
			return err
		}
	}
	s.messages.last, s.messages.size = last, int64(len(whole))
	s.messages.file, err = s.folder.Append(messagesName)
	return err
}

// readMessages returns the file of messages and the number of the last whole one. A line that is not whole was never
// confirmed, so it comes again. The error is a *sentinel.InvalidError.
func (s *shim) readMessages() (data []byte, last int64, err error) {
	data, err = s.folder.ReadFile(messagesName, 2*maxMessages)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	n := bytes.LastIndexByte(data, '\n')
	if err != nil || n < 0 {
		return data, 0, err
	}
	var m lessor.Message
	if err := json.Unmarshal(data[bytes.LastIndexByte(data[:n], '\n')+1:n], &m); err != nil {
		return nil, 0, &sentinel.InvalidError{Reason: sentinel.Malformed, Detail: "the last message: " + err.Error()}
	}
	return data, m.Seq, nil
}

// receive appends messages to their file. The next heartbeat, which is sent at once, confirms them.
func (s *shim) receive(ms []lessor.Message) {
	m := &s.messages
	if len(ms) == 0 || m.file == nil || m.size > maxMessages {
		return
	}
	var lines []byte
	last := m.last
	for _, msg := range ms {
		if msg.Seq <= last {
			continue
		}
		line, err := plainjson.Marshal(msg)
		if err != nil {
			s.warnOnce("a message", err)
			return
		}
		lines, last = append(append(lines, line...), '\n'), msg.Seq
	}
	if len(lines) > 0 {
		n, err := m.file.Write(lines)
		m.size += int64(n)
		if err = errors.Join(err, m.file.Sync()); err != nil {
			s.warnOnce("messages", err)
			_ = m.file.Close() // half a line may be in it: the next attempt removes that
			m.file = nil
			return
		}
		m.last = last
	}
	notify(s.ask)
}
