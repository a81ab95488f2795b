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

// decoding refuses unknown and repeated fields, and names are case-sensitive, so that a misspelt request does not pass
// for another. The parser accepts invalid escapes because payloads keep them; readText refuses them.
var decoding = json.JoinOptions(
	json.RejectUnknownMembers(true),
	jsontext.AllowInvalidUTF8(true),
	json.WithUnmarshalers(json.JoinUnmarshalers(
		json.UnmarshalFromFunc(readText),
		json.UnmarshalFromFunc(readRaw),
		json.UnmarshalFromFunc(readChange[int64]),
		json.UnmarshalFromFunc(readChange[bool]),
	)),
)

// decode reads a body into v, a pointer to a struct, or refuses it and names the field. null counts as absent.
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

// readText reads a string of valid characters without NUL, which not every store can keep.
func readText(d *jsontext.Decoder, s *string) error {
	switch kind := d.PeekKind(); {
	case kind == jsontext.KindNull:
		return errNull // an entry of a list cannot be absent
	case kind != jsontext.KindString:
		return errors.ErrUnsupported // the standard decoder then says what is wrong
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

// readRaw keeps a payload, result or checkpoint as it was sent; null counts as none.
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

// readChange reads a setting to change. Unlike elsewhere, null is not the same as absent: it resets the setting.
func readChange[T any](d *jsontext.Decoder, v *lessor.Change[T]) error {
	if d.PeekKind() == jsontext.KindNull {
		v.Reset = true
		return d.SkipValue()
	}
	return json.UnmarshalDecode(d, &v.To)
}

// refusalOf turns a parser's error into a refusal.
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
		return badField(fieldOf(semantic.JSONPointer),
			"must not be "+cmp.Or(kindNames[semantic.JSONKind], "of this type"))
	case errors.As(err, &syntactic) && errors.Is(syntactic.Err, jsontext.ErrDuplicateName):
		return badField(fieldOf(syntactic.JSONPointer), "is there twice")
	case syntactic != nil:
		return badBody(fmt.Sprintf("is not JSON: %v, at byte %d", syntactic.Err, syntactic.ByteOffset))
	}
	return fmt.Errorf("decode body: %w", err)
}

// kindNames are the usual names of the JSON types.
var kindNames = map[jsontext.Kind]string{
	jsontext.KindNull: "null", jsontext.KindTrue: "a boolean", jsontext.KindFalse: "a boolean",
	jsontext.KindString: "a string",
	jsontext.KindNumber: "a number", jsontext.KindBeginObject: "an object", jsontext.KindBeginArray: "an array",
}

// maxFieldName bounds the part of an unknown field name that an answer repeats.
const maxFieldName = 200

// fieldOf turns a JSON pointer into the usual form: /jobs/3/priority becomes jobs[3].priority.
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

// depth returns how deep a JSON document is nested.
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
