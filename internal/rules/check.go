package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"lessor"
)

// MaxFaults bounds how many wrong fields one refusal names.
const MaxFaults = 100

// check collects the mistakes of a request, so that the caller learns of all at once.
type check struct {
	prefix string // of field names, like "jobs[3]."
	code   lessor.Code
	detail string
	fields []lessor.FieldError
}

// severity orders codes: a request with several mistakes is refused with the last of theirs.
var severity = []lessor.Code{"", lessor.CodeInvalidValue, lessor.CodePayloadTooLarge, lessor.CodeInvalidRequest}

func (c *check) add(code lessor.Code, detail, field, message string) {
	if slices.Index(severity, code) > slices.Index(severity, c.code) {
		c.code, c.detail = code, detail
	}
	if len(c.fields) < MaxFaults {
		c.fields = append(c.fields, lessor.FieldError{Field: c.prefix + field, Message: message})
	}
}

// fail notes a value that is not allowed.
func (c *check) fail(field, format string, args ...any) {
	c.add(lessor.CodeInvalidValue, "a value is not allowed", field, fmt.Sprintf(format, args...))
}

// require notes that a field is missing, unless it is there.
func (c *check) require(field string, there bool) {
	if !there {
		c.add(lessor.CodeInvalidRequest, "a required field is missing", field, "is required")
	}
}

// size notes a field of more bytes than are allowed.
func (c *check) size(field string, size, limit int) {
	if size > limit {
		c.add(lessor.CodePayloadTooLarge, fmt.Sprintf("%s is %d bytes; the limit is %d", c.prefix+field, size, limit),
			field, fmt.Sprintf("must be at most %d bytes, not %d", limit, size))
	}
}

// err returns the refusal, nil without mistakes.
func (c *check) err() error {
	if len(c.fields) == 0 {
		return nil
	}
	return &lessor.Error{Code: c.code, Detail: c.detail, Fields: c.fields}
}

// Faults collects the refusals of a batch's entries into one: the code of the first, the fields of all.
type Faults struct{ all *lessor.Error }

// Add adds the refusal of one entry; nil adds none. It returns an error if there is nothing more to collect: a refusal
// that names no field counts alone, and MaxFaults are enough.
func (f *Faults) Add(err error) error {
	refusal, ok := errors.AsType[*lessor.Error](err)
	switch {
	case err == nil:
		return nil
	case !ok || len(refusal.Fields) == 0:
		return err
	case f.all == nil:
		first := *refusal
		f.all = &first
	default:
		f.all.Fields = slices.Concat(f.all.Fields, refusal.Fields)
	}
	if f.all.Fields = f.all.Fields[:min(len(f.all.Fields), MaxFaults)]; len(f.all.Fields) == MaxFaults {
		return f.all
	}
	return nil
}

// Err returns the refusal of the batch, nil without one.
func (f *Faults) Err() error {
	if f.all == nil {
		return nil
	}
	return f.all
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

// oneOf returns one of the words that are allowed; nil gives the first.
func oneOf[T ~string](c *check, field string, v *string, allowed ...T) T {
	if v == nil {
		return allowed[0]
	}
	if !slices.Contains(allowed, T(*v)) {
		c.fail(field, "must be %s, not %q", Either(allowed), *v)
	}
	return T(*v)
}

// Either lists words as "a, b or c".
func Either[T ~string](words []T) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i > 0 && i == len(words)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
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
	var c check
	c.require(field, false)
	return c.err()
}

// WrongField refuses one field whose value is not allowed.
func WrongField(field, format string, args ...any) error {
	var c check
	c.fail(field, format, args...)
	return c.err()
}

// maxBatch is how many jobs or leases one call may name.
const maxBatch = 1000

// BatchView refuses a view that the answer to a batch of submissions does not have.
func BatchView(view *string) error {
	var c check
	oneOf(&c, "view", view, lessor.ViewFull, lessor.ViewIDs)
	return c.err()
}

// BatchSize refuses a batch that is empty or too large.
func BatchSize(field string, n int) error {
	var c check
	if n < 1 || n > maxBatch {
		c.fail(field, "must be 1 to %d, not %d", maxBatch, n)
	}
	return c.err()
}
