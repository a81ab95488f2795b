package cron

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxLength bounds an expression, in characters.
const maxLength = 120

// macros are the names of common expressions.
var macros = map[string]string{
	"@hourly":   "0 * * * *",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@weekly":   "0 0 * * 0",
	"@monthly":  "0 0 1 * *",
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
}

// Parse parses a cron expression of five fields (minute, hour, day, month and day of the week, each a list of numbers,
// names, ranges and steps) or a macro. H stands for a number that is derived from jobID, so that not all definitions
// fire at once. Parse refuses an expression that never fires. The error is a sentence about the expression, without its
// subject.
func Parse(expr, jobID string) (Schedule, error) {
	if utf8.RuneCountInString(expr) > maxLength {
		return Schedule{}, fmt.Errorf("is longer than %d characters", maxLength)
	}
	words, err := expand(strings.FieldsFunc(expr, func(r rune) bool { return r == ' ' || r == '\t' }))
	if err != nil {
		return Schedule{}, err
	}
	var s Schedule
	for i, set := range []*uint64{&s.minute, &s.hour, &s.day, &s.month, &s.week} {
		if *set, err = fields[i].parse(words[i], jobID); err != nil {
			return Schedule{}, fmt.Errorf("has a wrong %s: %w", fields[i].name, err)
		}
	}
	s.week = (s.week | s.week>>7) & 0x7f // 7 is Sunday too
	s.repeats = words[0][0] == '*' || words[1][0] == '*'
	s.anyDay, s.anyWeek = words[2][0] == '*', words[4][0] == '*'
	if !s.fires() {
		return Schedule{}, errors.New("never fires: no month it names has such a day")
	}
	return s, nil
}

// expand returns the five fields of an expression that was split into words.
func expand(words []string) ([]string, error) {
	if len(words) == 0 {
		return nil, errors.New("is empty: it needs five fields, like 0 3 * * MON-FRI")
	}
	if name, _, ok := strings.Cut(words[0], "="); ok && strings.HasSuffix(strings.ToUpper(name), "TZ") {
		return nil, fmt.Errorf("must not hold a time zone (%s=): set the definition's timezone", name)
	}
	if word := strings.ToLower(words[0]); word[0] == '@' {
		whole, ok := macros[word]
		switch {
		case ok && len(words) == 1:
			words = strings.Fields(whole)
		case ok:
			return nil, fmt.Errorf("must have nothing after %s", word)
		case word == "@every":
			return nil, errors.New("must not be @every: use a schedule of the type interval")
		case word == "@reboot":
			return nil, errors.New("must not be @reboot: that is not a time")
		default:
			return nil, errors.New("begins with an unknown name: there are @hourly, @daily, @midnight, @weekly, " +
				"@monthly, @yearly and @annually")
		}
	}
	if len(words) != len(fields) {
		return nil, fmt.Errorf("has %d fields instead of five: minute, hour, day, month, day of week", len(words))
	}
	return words, nil
}

// fires reports whether there is any day for s. The calendar has every date on every day of the week.
func (s Schedule) fires() bool {
	if !s.anyDay && !s.anyWeek {
		return true // the day of the week alone is enough
	}
	for month, days := range [...]int{1: 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31} {
		if s.month>>month&1 == 1 && next(s.day, 0) <= days {
			return true
		}
	}
	return false
}
