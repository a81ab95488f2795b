package cron

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A field is one of the five of an expression.
type field struct {
	name      string
	low, high int      // the range of "*"
	most      int      // the largest accepted number
	hashed    int      // the largest number of H without a range
	names     []string // of the values from low on
}

var fields = [5]field{
	{name: "minute", low: 0, high: 59, most: 59, hashed: 59},
	{name: "hour", low: 0, high: 23, most: 23, hashed: 23},
	{name: "day of month", low: 1, high: 31, most: 31, hashed: 28}, // every month has a 28th
	{
		name: "month", low: 1, high: 12, most: 12, hashed: 12,
		names: []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"},
	},
	{
		name: "day of week", low: 0, high: 6, most: 7, hashed: 6,
		names: []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"},
	},
}

// parse returns the values that text names, bit n for value n.
func (f field) parse(text, jobID string) (set uint64, err error) {
	for term := range strings.SplitSeq(text, ",") {
		values, err := f.term(term, jobID)
		if err != nil {
			return 0, err
		}
		set |= values
	}
	return set, nil
}

// term parses one member of a list: a value, a range or a hash, and a step.
func (f field) term(term, jobID string) (set uint64, err error) {
	body, by, stepped := strings.Cut(term, "/")
	step := 1
	if stepped {
		if step, err = f.step(by); err != nil {
			return 0, err
		}
	}
	low, high, err := f.span(body, stepped)
	if err != nil {
		return 0, err
	}
	if body[0] == 'H' {
		choices := high - low + 1
		if stepped {
			choices = min(choices, step)
		}
		low += int(hash(f.name+"\x00"+jobID, uint64(choices)))
		if !stepped {
			high = low
		}
	}
	for v := low; v <= high; v += step {
		set |= 1 << v
	}
	return set, nil
}

// span returns the values from which a term chooses.
func (f field) span(body string, stepped bool) (low, high int, err error) {
	inner, hashed := strings.CutPrefix(body, "H(")
	if hashed {
		inner, hashed = strings.CutSuffix(inner, ")")
	}
	switch {
	case body == "*":
		return f.low, f.high, nil
	case body == "H":
		return f.low, f.hashed, nil
	case hashed:
		return f.between(inner)
	case strings.Contains(body, "-"):
		return f.between(body)
	}
	if low, err = f.value(body); err != nil {
		return 0, 0, err
	}
	if stepped { // 20/15 is 20-59/15
		return low, max(low, f.high), nil
	}
	return low, low, nil
}

// step parses the number after a slash. A step larger than the field is a mistake, like */90 for every 90 minutes.
func (f field) step(text string) (int, error) {
	n, err := number(text)
	if most := f.high - f.low + 1; err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("the step %q is not 1 to %d", text, most)
	}
	return n, nil
}

func (f field) between(text string) (low, high int, err error) {
	from, to, ok := strings.Cut(text, "-")
	if !ok {
		return 0, 0, fmt.Errorf("%q is not a range like 1-5", text)
	}
	if low, err = f.value(from); err != nil {
		return 0, 0, err
	}
	if high, err = f.value(to); err != nil {
		return 0, 0, err
	}
	if low > high {
		hint := "name both parts in a list"
		if f.most > f.high {
			hint += ", and Sunday at the end of a range is 7"
		}
		return 0, 0, fmt.Errorf("the range %q runs backwards: %s", text, hint)
	}
	return low, high, nil
}

func (f field) value(text string) (int, error) {
	if i := slices.Index(f.names, strings.ToUpper(text)); i >= 0 {
		return f.low + i, nil
	}
	n, err := number(text)
	switch {
	case err != nil && f.names != nil:
		return 0, fmt.Errorf("%q is neither a number nor a name like %s", text, f.names[1])
	case err != nil:
		return 0, fmt.Errorf("%q is not a number", text)
	case n < f.low || n > f.most:
		return 0, fmt.Errorf("%d is not %d to %d", n, f.low, f.most)
	}
	return n, nil
}

// hash returns a number 0 to n-1 that follows from text alone. It must never change, or every definition would move.
func hash(text string, n uint64) uint64 {
	sum := sha256.Sum256([]byte(text))
	return binary.BigEndian.Uint64(sum[:]) % n
}

// number parses digits without a sign.
func number(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), err
}
