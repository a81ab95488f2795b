// Package schema checks payloads against JSON Schemas (2020-12) that strangers submit, such as the schemas of handlers.
//
// A schema refers only to itself: the package refuses a reference that does not begin with "#", and the library's
// loader, which would open files, refuses every other. The work of a check is bounded, because a schema of a few bytes
// can ask for an exponential number of steps: the package first counts the steps of the worst case (cost.go), and too
// many are a fault of the payload. Patterns are RE2, and bounded in size. Numbers are compared as they are written;
// "format" is an annotation, as the draft says.
package schema

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// MaxSize bounds a schema, in bytes.
const MaxSize = 64 << 10

// draft is the only accepted "$schema".
const draft = "https://json-schema.org/draft/2020-12/schema"

// place is the schema's address for the library. Nothing is there.
const place = "lessor:///schema"

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema
	root     *node
}

// Compile compiles a schema. The error says what is wrong with it and where, as a sentence about the schema without its
// subject.
func Compile(raw []byte) (*Schema, error) {
	if len(raw) > MaxSize {
		return nil, fmt.Errorf("is larger than %d KiB", MaxSize>>10)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("is not JSON: %w", err)
	}
	switch doc.(type) {
	case bool, map[string]any:
	default:
		return nil, errors.New("is neither an object nor true or false")
	}
	root, err := read(doc)
	if err != nil {
		return nil, err
	}
	compiled, err := compile(doc)
	if err != nil {
		return nil, invalid(err)
	}
	return &Schema{compiled: compiled, root: root}, nil
}

func compile(doc any) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(compilePattern)
	if err := c.AddResource(place, doc); err != nil {
		return nil, err
	}
	return c.Compile(place)
}

// noLoader refuses to open anything.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errLeaves }

var errLeaves = errors.New("references must stay inside the document")

// invalid returns in short why the library refused a schema.
func invalid(err error) error {
	wrong, ok := errors.AsType[*jsonschema.SchemaValidationError](err)
	if !ok {
		return fmt.Errorf("cannot be used: %s", cut(err.Error(), maxMessage))
	}
	if cause, ok := errors.AsType[*jsonschema.ValidationError](wrong.Err); ok {
		if all := faults(cause, nil, "schema"); len(all) > 0 {
			var messages []string // several if the draft has alternatives: a type is a word or an array
			for _, f := range all {
				if f.Field == all[0].Field {
					messages = append(messages, f.Message)
				}
			}
			text := strings.Join(messages, ", or ")
			return fmt.Errorf("is not a valid schema: %s %s", all[0].Field, cut(text, maxMessage))
		}
	}
	return errors.New("is not a valid schema")
}

// Check returns what is wrong with a payload, nil if the payload satisfies the schema.
func (s *Schema) Check(payload []byte) []Fault {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(payload))
	if err != nil {
		return []Fault{{Field: whole, Message: "is not JSON"}}
	}
	if n, ok := hugeNumber(value); ok {
		return []Fault{{Field: whole, Message: fmt.Sprintf("holds the number %s, which is too large to check",
			cut(n.String(), 40))}}
	}
	if !affordable(s.root, value) {
		return []Fault{{Field: whole, Message: "takes too many steps to check against the schema"}}
	}
	err = s.compiled.Validate(value)
	if err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return faults(wrong, value, whole)
	}
	return []Fault{{Field: whole, Message: cut(err.Error(), maxMessage)}}
}
