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

// whole names the payload itself in faults.
const whole = "payload"

// The limits of one answer: enough to correct a payload of any size.
const (
	maxFaults  = 20
	maxField   = 200 // bytes
	maxMessage = 300 // bytes
)

// faults returns the innermost causes of err in the order of their fields. value was checked, and is called name.
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

// fieldOf returns the path of a field as people write it.
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

// messageOf returns the library's message about one cause, without the path in front.
func messageOf(e *jsonschema.ValidationError) string {
	alone := jsonschema.ValidationError{ErrorKind: e.ErrorKind}
	return cut(strings.TrimPrefix(alone.Error(), "at '': "), maxMessage)
}

// cut shortens s to n bytes, between characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
