package lessor

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

// Answer is what a person answers to a question.
type Answer struct {
	QuestionID *string `json:"question_id"`
	Answer     *string `json:"answer"`
}
