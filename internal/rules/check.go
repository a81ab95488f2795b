package rules

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"lessor"
)

// check collects the mistakes of a request, so that the caller learns of all at once.
type check struct {
	prefix string // of field names, like "jobs[3]."
	fields []lessor.FieldError
}

func (c *check) fail(field, format string, args ...any) {
	c.fields = append(c.fields, lessor.FieldError{Field: c.prefix + field, Message: fmt.Sprintf(format, args...)})
}

// err returns the refusal, nil without mistakes.
func (c *check) err() error {
	if len(c.fields) == 0 {
		return nil
	}
	return &lessor.Error{Code: lessor.CodeInvalidValue, Detail: "a value is not allowed", Fields: c.fields}
}

// text returns a string of least..most characters; nil gives the default.
func (c *check) text(field string, v *string, least, most int, def string) string {
	if v == nil {
		return def
	}
	switch n := utf8.RuneCountInString(*v); {
	case !utf8.ValidString(*v) || strings.ContainsRune(*v, 0):
		c.fail(field, "must be UTF-8 text without NUL characters")
	case n < least || n > most:
		c.fail(field, "must be %d to %d characters long, not %d", least, most, n)
	}
	return *v
}

// number returns an integer of least..most; nil gives the default.
func (c *check) number(field string, v *int64, least, most, def int64) int64 {
	if v == nil {
		return def
	}
	if *v < least || *v > most {
		c.fail(field, "must be %d to %d, not %d", least, most, *v)
	}
	return *v
}

// millis returns a duration given in milliseconds.
func (c *check) millis(field string, v *int64, least, most, def time.Duration) time.Duration {
	if v == nil {
		return def
	}
	return time.Duration(c.number(field, v, least.Milliseconds(), most.Milliseconds(), 0)) * time.Millisecond
}

// Missing refuses a request that lacks a field it must have.
func Missing(field string) error {
	return &lessor.Error{
		Code: lessor.CodeInvalidRequest, Detail: "a required field is missing",
		Fields: []lessor.FieldError{{Field: field, Message: "is required"}},
	}
}

// wrongType refuses a field of the wrong JSON type.
func wrongType(field, want string) error {
	return &lessor.Error{
		Code: lessor.CodeInvalidRequest, Detail: "a field has the wrong type",
		Fields: []lessor.FieldError{{Field: field, Message: "must be " + want}},
	}
}

func tooLarge(field string, size, limit int) error {
	return &lessor.Error{
		Code:   lessor.CodePayloadTooLarge,
		Detail: fmt.Sprintf("%s is %d bytes; the limit is %d", field, size, limit),
	}
}

// WrongField refuses one field whose value is not allowed.
func WrongField(field, format string, args ...any) error {
	var c check
	c.fail(field, format, args...)
	return c.err()
}

// maxBatch is how many jobs or leases one call may name.
const maxBatch = 1000

// BatchSize refuses a batch that is empty or too large.
func BatchSize(field string, n int) error {
	var c check
	if n < 1 || n > maxBatch {
		c.fail(field, "must be 1 to %d, not %d", maxBatch, n)
	}
	return c.err()
}
