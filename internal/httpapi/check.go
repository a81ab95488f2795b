package httpapi

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"lessor"
	"lessor/internal/rules"
)

// fault returns what is wrong with a string or a number by its description in the document, "" if nothing is. Rules
// decide whether a request is accepted. They may stop at the first mistake, so a refused request is also checked
// against the document, and the caller learns of all its mistakes.
func (o object) fault(v any) string {
	switch v := v.(type) {
	case string:
		return o.textFault(v)
	case int64:
		return o.rangeFault("imum", float64(v))
	case float64:
		return o.rangeFault("imum", v)
	}
	return ""
}

func (o object) textFault(s string) string {
	if words, ok := o["enum"].([]any); ok {
		return enumFault(words, s)
	}
	n := utf8.RuneCountInString(s)
	if most, ok := o["maxLength"].(int); ok {
		if least, _ := o["minLength"].(int); n < least || n > most {
			return fmt.Sprintf("must be %d to %d characters long, not %d", least, most, n)
		}
	}
	switch o["format"] {
	case "uuid":
		if _, err := lessor.ParseUUID(s); err != nil {
			return err.Error()
		}
	case "date-time":
		if _, err := time.Parse(time.RFC3339, s); err != nil {
			return "must be a time like 2026-02-06T20:10:00.000Z, not " + quoted(s)
		}
	}
	return ""
}

func enumFault(words []any, s string) string {
	allowed := make([]string, len(words))
	for i, w := range words {
		if allowed[i] = fmt.Sprint(w); allowed[i] == s {
			return ""
		}
	}
	return "must be " + rules.Either(allowed) + ", not " + quoted(s)
}

// rangeFault says what is wrong with a number ("imum", of minimum and maximum) or with the length of a list ("Items").
func (o object) rangeFault(of string, n float64) string {
	least, bounded := o["min"+of].(int)
	most, limited := o["max"+of].(int)
	sent := strconv.FormatFloat(n, 'f', -1, 64)
	switch low, high := bounded && n < float64(least), limited && n > float64(most); {
	case bounded && limited && (low || high):
		return fmt.Sprintf("must be %d to %d, not %s", least, most, sent)
	case low:
		return fmt.Sprintf("must be at least %d, not %s", least, sent)
	case high:
		return fmt.Sprintf("must be at most %d, not %s", most, sent)
	}
	return ""
}

// quoted shows the beginning of a value that an answer repeats.
func quoted(s string) string { return fmt.Sprintf("%q", shorten(s, maxShown)) }
