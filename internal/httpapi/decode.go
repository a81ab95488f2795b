package httpapi

import (
	"bytes"
	"cmp"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"lessor"
)

// decoding is strict where a misspelt request could pass for another: unknown and repeated fields are refused, names
// count by case. Invalid escapes are let through by the parser because payloads keep them; text refuses them itself.
var decoding = json.JoinOptions(
	json.RejectUnknownMembers(true),
	jsontext.AllowInvalidUTF8(true),
	json.WithUnmarshalers(json.JoinUnmarshalers(
		json.UnmarshalFromFunc(readText),
		json.UnmarshalFromFunc(readRaw),
	)),
)

// decode reads a body into v, a pointer to a struct, or refuses it, naming the field. null is the same as absent.
func decode(b []byte, v any) error {
	switch {
	case !utf8.Valid(b):
		return badBody("is not UTF-8")
	case depth(b) > maxDepth:
		return badBody(fmt.Sprintf("is nested deeper than %d levels", maxDepth))
	}
	if t := bytes.TrimSpace(b); len(t) > 0 && !bytes.Equal(t, []byte("null")) {
		if err := json.Unmarshal(b, v, decoding); err != nil {
			return refusalOf(err)
		}
	}
	return missing(v)
}

// valueError is a value of the right type that is not allowed.
type valueError string

func (e valueError) Error() string { return string(e) }

var errNull = errors.New("null in a list")

// readText reads a string: real characters, and no NUL, which not every store can keep.
func readText(d *jsontext.Decoder, s *string) error {
	switch kind := d.PeekKind(); {
	case kind == jsontext.KindNull:
		return errNull // an entry of a list: absent makes no sense there
	case kind != jsontext.KindString:
		return errors.ErrUnsupported // the standard way, which says what is wrong
	}
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	b, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return valueError("must be text without broken escapes")
	}
	if bytes.IndexByte(b, 0) >= 0 {
		return valueError("must not contain NUL characters")
	}
	*s = string(b)
	return nil
}

// readRaw keeps a payload, result or checkpoint as it was sent; null is none.
func readRaw(d *jsontext.Decoder, v *stdjson.RawMessage) error {
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	if *v = nil; raw.Kind() != jsontext.KindNull {
		*v = bytes.Clone(raw)
	}
	return nil
}

// refusalOf says what a parser's error means to the caller.
func refusalOf(err error) error {
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	var value valueError
	switch {
	case errors.As(err, &semantic) && errors.As(semantic.Err, &value):
		return badValue(fieldOf(semantic.JSONPointer), string(value))
	case semantic != nil && errors.Is(semantic.Err, json.ErrUnknownName):
		return badField(fieldOf(semantic.JSONPointer), "is not a field of this request")
	case semantic != nil && errors.Is(semantic.Err, strconv.ErrRange):
		return badValue(fieldOf(semantic.JSONPointer), "is out of range")
	case semantic != nil && errors.Is(semantic.Err, strconv.ErrSyntax):
		return badValue(fieldOf(semantic.JSONPointer), "must be a whole number, without fraction or exponent")
	case semantic != nil && errors.Is(semantic.Err, errNull):
		return badField(fieldOf(semantic.JSONPointer), "must not be null")
	case semantic != nil:
		return badField(fieldOf(semantic.JSONPointer), "must not be "+cmp.Or(kindNames[semantic.JSONKind], "of this type"))
	case errors.As(err, &syntactic) && errors.Is(syntactic.Err, jsontext.ErrDuplicateName):
		return badField(fieldOf(syntactic.JSONPointer), "is there twice")
	case syntactic != nil:
		return badBody(fmt.Sprintf("is not JSON: %v, at byte %d", syntactic.Err, syntactic.ByteOffset))
	}
	return fmt.Errorf("decode body: %w", err)
}

// kindNames are the JSON types as people call them.
var kindNames = map[jsontext.Kind]string{
	jsontext.KindNull: "null", jsontext.KindTrue: "a boolean", jsontext.KindFalse: "a boolean", jsontext.KindString: "a string",
	jsontext.KindNumber: "a number", jsontext.KindBeginObject: "an object", jsontext.KindBeginArray: "an array",
}

// maxFieldName bounds what an answer repeats of a field that the caller made up.
const maxFieldName = 200

// fieldOf turns a JSON pointer into the form people write: /jobs/3/priority is jobs[3].priority.
func fieldOf(p jsontext.Pointer) string {
	var b strings.Builder
	for name := range p.Tokens() {
		_, err := strconv.ParseUint(name, 10, 32)
		switch {
		case err == nil && b.Len() > 0:
			b.WriteString("[" + name + "]")
		case b.Len() > 0:
			b.WriteString("." + name)
		default:
			b.WriteString(name)
		}
	}
	if b.Len() == 0 {
		return "body"
	}
	return shorten(strings.ToValidUTF8(b.String(), "�"), maxFieldName)
}

// depth is how deep a document is nested, right for every document that is JSON.
func depth(b []byte) (deepest int) {
	level, inText := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}

// mostMissing bounds how many missing fields one answer names.
const mostMissing = 20

// missing refuses a request that lacks required fields.
func missing(v any) error {
	fields := absent(nil, v)
	if len(fields) == 0 {
		return nil
	}
	return &lessor.Error{Code: lessor.CodeInvalidRequest, Detail: "a required field is missing", Fields: fields}
}
