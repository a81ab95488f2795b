package schema

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Fault is one thing that is wrong with a payload.
type Fault struct {
	Field   string // like payload.items[3].name
	Message string // a sentence about the field, without its subject
}

// whole is the name of a payload in faults.
const whole = "payload"

// What one answer may hold: enough to mend the payload, however large it is.
const (
	maxFaults  = 20
	maxField   = 200 // bytes
	maxMessage = 300 // bytes
)

// faults returns the innermost causes of err, in the order of their fields. value is what was checked, and name what it
// is called.
func faults(err *jsonschema.ValidationError, value any, name string) []Fault {
	var all []Fault
	var gather func(*jsonschema.ValidationError)
	gather = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			gather(cause)
		}
		if len(e.Causes) == 0 {
			all = append(all, Fault{Field: fieldOf(e.InstanceLocation, value, name), Message: messageOf(e)})
		}
	}
	gather(err)
	slices.SortFunc(all, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	all = slices.Compact(all)
	return all[:min(len(all), maxFaults)]
}

// fieldOf writes the way to a field as people write it.
func fieldOf(path []string, value any, name string) string {
	var b strings.Builder
	b.WriteString(name)
	for _, step := range path {
		if b.Len() > maxField {
			break
		}
		switch v := value.(type) {
		case []any:
			b.WriteString("[" + step + "]")
			if i, err := strconv.Atoi(step); err == nil && i < len(v) {
				value = v[i]
			}
		case map[string]any:
			b.WriteString("." + step)
			value = v[step]
		default:
			b.WriteString("." + step)
		}
	}
	return cut(b.String(), maxField)
}

// messageOf returns the library's words for one cause, without the place, which it puts in front.
func messageOf(e *jsonschema.ValidationError) string {
	alone := jsonschema.ValidationError{ErrorKind: e.ErrorKind}
	return cut(strings.TrimPrefix(alone.Error(), "at '': "), maxMessage)
}

// cut shortens s to n bytes, at a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
