package lessor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// AnswerKeyPrefix begins the keys of the answers in a job's journal.
const AnswerKeyPrefix = "ask-"

// AnswerKey is the key under which a job's journal keeps the answer to the question with this text, so that every later
// attempt finds it.
func AnswerKey(question string) string {
	sum := sha256.Sum256([]byte(question))
	return AnswerKeyPrefix + hex.EncodeToString(sum[:])
}

// Question is the last question that a job asked. ExpiresAt is set while the job waits. A question without an answer
// whose job has gone on was not answered in time.
type Question struct {
	ID         QuestionID `json:"question_id"`
	Text       string     `json:"text"`
	Choices    []string   `json:"choices"`
	AskedAt    Instant    `json:"asked_at"`
	ExpiresAt  Instant    `json:"expires_at"`
	Answer     *string    `json:"answer"`
	AnsweredAt Instant    `json:"answered_at"`
	AnsweredBy *string    `json:"answered_by"`
}

// Asking is a question as a worker sends it. With choices, the answer must be one of them.
type Asking struct {
	Text    *string  `json:"text"`
	Choices []string `json:"choices,omitempty"`
}

// CheckQuestion returns why the server would refuse a question, so that a worker learns it before it ends its attempt.
func CheckQuestion(text string, choices []string, within time.Duration) error {
	if text == "" || len(text) > MaxDialog {
		return fmt.Errorf("the question must be 1 to %d bytes long, not %d", MaxDialog, len(text))
	}
	if len(choices) > MaxChoices {
		return fmt.Errorf("a question has at most %d choices, not %d", MaxChoices, len(choices))
	}
	for _, c := range choices {
		if n := utf8.RuneCountInString(c); n < 1 || n > MaxChoice {
			return fmt.Errorf("a choice must be 1 to %d characters long, not %d", MaxChoice, n)
		}
	}
	for _, s := range append([]string{text}, choices...) {
		if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			return errors.New("a question and its choices must be UTF-8 text without NUL characters")
		}
	}
	if within > MaxAsked {
		return fmt.Errorf("a question waits at most %d days for its answer", MaxAsked/(24*time.Hour))
	}
	return nil
}

// Answer is what a person answers to a question.
type Answer struct {
	QuestionID *string `json:"question_id"`
	Answer     *string `json:"answer"`
}

// MessageAsk is a message as a person sends it to a job. With a Key, the same message again is answered the same and
// not sent twice.
type MessageAsk struct {
	Text *string `json:"text"`
	Key  *string `json:"key,omitempty"`
}

// Message is a message to a job. Seq counts the messages of the job from 1, and may leave numbers out. The answers to a
// worker's heartbeats repeat a message until the worker has confirmed it, or a later one, by Heartbeat.MessagesSeen.
type Message struct {
	Seq    int64   `json:"seq"`
	Text   string  `json:"text"`
	SentAt Instant `json:"sent_at"`
	SentBy string  `json:"sent_by"`
}
