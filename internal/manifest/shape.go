package manifest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A shape describes the allowed values at a place.
type shape struct {
	kind   kind
	whole  bool             // a number without a fraction
	fields map[string]shape // fields of an object; nil = any
	each   *shape           // shape of a list's items
}

// whole is the shape of every number outside payloads.
var whole = shape{kind: number, whole: true}

// The fields of a manifest and of its definitions. TestShapesFollowTheWords compares them with those of the API.
var (
	manifestShape = shape{kind: object, fields: map[string]shape{
		"moduleId": {kind: text},
		"version":  {kind: text},
		"tenantId": {kind: text},
		"jobs":     {kind: list, each: &jobShape},
		"prune":    {kind: boolean},
		"dryRun":   {kind: boolean},
	}}
	jobShape = shape{kind: object, fields: map[string]shape{
		"jobId":    {kind: text},
		"tenantId": {kind: text},
		"schedule": {kind: object, fields: map[string]shape{
			"type": {kind: text}, "cron": {kind: text}, "seconds": whole,
		}},
		"handlerId":            {kind: text},
		"lockKey":              {kind: text},
		"maxAttempts":          whole,
		"timeoutSeconds":       whole,
		"maxRuntimeSeconds":    whole,
		"fairnessClass":        {kind: text},
		"isEnabled":            {kind: boolean},
		"payload":              {kind: object},
		"priority":             {kind: text},
		"requestedUnits":       whole,
		"timezone":             {kind: text},
		"overlap":              {kind: text},
		"catchUp":              {kind: text},
		"catchUpWindowSeconds": whole,
		"jitterSeconds":        whole,
		"circuit": {
			kind: object, fields: map[string]shape{"failures": whole, "cooldownSeconds": whole},
		},
		"backoff": {
			kind: object, fields: map[string]shape{"firstMs": whole, "maxMs": whole},
		},
		"paused":     {kind: boolean},
		"moduleId":   {kind: text},
		"version":    {kind: text},
		"nextTickAt": {kind: text},
		"createdAt":  {kind: text},
		"updatedAt":  {kind: text},
	}}
)

// maxErrors bounds the mistakes in one error.
const maxErrors = 20

// check collects the mistakes in a file.
type check struct {
	file string
	errs []error
}

func (c *check) refuse(v *value, format string, args ...any) {
	if len(c.errs) < maxErrors {
		c.errs = append(c.errs, fmt.Errorf("%s:%d:%d: %s", c.file, v.line, v.column, fmt.Sprintf(format, args...)))
	}
}

// shape checks a value against its shape. Errors call it by name.
func (c *check) shape(v *value, s shape, name string) {
	if v.kind != s.kind {
		if v.kind != null { // null is the same as a missing field
			c.refuse(v, "%s must be %s, not %s%s", name, s.kind, v.kind, hint(v, s.kind))
		}
		return
	}
	if v.kind == number && s.whole {
		c.whole(v, name)
	}
	for _, item := range v.items {
		if s.each != nil {
			c.shape(item, *s.each, "each of "+name)
		}
	}
	seen := map[string]*value{}
	for _, e := range v.members {
		if first := seen[e.name]; first != nil {
			c.refuse(e.key, "%s was given before, in line %d", e.name, first.line)
		}
		seen[e.name] = e.key
		sub, known := s.fields[e.name]
		switch {
		case known:
			c.shape(e.value, sub, e.name)
		case s.fields != nil:
			c.refuse(e.key, "%s has no field %q%s", name, e.name, nearest(e.name, s.fields))
		default:
			c.twice(e.value)
		}
	}
}

// maxExact bounds whole numbers that are written with a fraction or an exponent: floats up to it are exact.
const maxExact = 1 << 53

// whole gives a whole number its shortest form: 300.0 and 3e2 are 300.
func (c *check) whole(v *value, name string) {
	if _, err := strconv.ParseInt(v.scalar, 10, 64); err == nil {
		return
	}
	f, err := strconv.ParseFloat(v.scalar, 64)
	switch {
	case err != nil || math.Abs(f) > maxExact:
		c.refuse(v, "%s must be a whole number of at most 15 digits", name)
	case f != math.Trunc(f):
		c.refuse(v, "%s must be a whole number, not %s", name, v.scalar)
	default:
		v.scalar = strconv.FormatInt(int64(f), 10)
	}
}

// twice refuses duplicate names inside a payload.
func (c *check) twice(v *value) {
	for _, item := range v.items {
		c.twice(item)
	}
	c.shape(v, shape{kind: v.kind}, "payload")
}

// hint says what to write instead.
func hint(v *value, want kind) string {
	switch {
	case want == text && (v.kind == number || v.kind == boolean):
		return fmt.Sprintf(": write %q", v.scalar)
	case want == boolean && v.kind == text:
		return ": write true or false, without quotes"
	case want == number && v.kind == text && isNumber(v.scalar):
		return fmt.Sprintf(": write %s, without quotes", v.scalar)
	}
	return ""
}

// separators are the characters that nearest ignores in a name.
var separators = strings.NewReplacer("_", "", "-", "")

// nearest lists the fields that exist, or names the one that was probably meant.
func nearest(name string, fields map[string]shape) string {
	plain := func(s string) string { return strings.ToLower(separators.Replace(s)) }
	names := slices.Sorted(maps.Keys(fields))
	best, least := "", min(2, len(name)/3)+1
	for _, field := range names {
		if d := distance(plain(field), plain(name)); d < least {
			best, least = field, d
		}
	}
	if best != "" {
		return fmt.Sprintf(": did you mean %s?", best)
	}
	return ": there are " + strings.Join(names, ", ")
}

// distance counts the letters to insert, remove or replace that make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0]++
		for j := range len(b) {
			change := left
			if a[i] != b[j] {
				change++
			}
			left = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
