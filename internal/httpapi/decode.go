package httpapi

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"lessor"
)

// decoding refuses unknown and repeated fields, and names are case-sensitive, so that a misspelt request does not pass
// for another. The parser accepts invalid escapes because payloads keep them; readText refuses
// them. An error need not say what is wrong: refusalOf looks again.
var decoding = json.JoinOptions(
	json.RejectUnknownMembers(true),
	jsontext.AllowInvalidUTF8(true),
	json.WithUnmarshalers(json.JoinUnmarshalers(
		json.UnmarshalFromFunc(readText),
		json.UnmarshalFromFunc(readWhole),
		json.UnmarshalFromFunc(readRaw),
		json.UnmarshalFromFunc(readChange[int64]),
		json.UnmarshalFromFunc(readChange[bool]),
		json.UnmarshalFromFunc(readChange[string]),
	)),
)

// decode reads a body into v, a pointer to a struct, or refuses it and names every field that is wrong. null counts as
// absent.
func decode(b []byte, v any) error {
	if decodeHot(b, v) {
		return nil
	}
	reflect.ValueOf(v).Elem().SetZero()
	return decodeAny(b, v)
}

// decodeAny is decode for every body.
func decodeAny(b []byte, v any) error {
	switch {
	case !utf8.Valid(b):
		return badBody("is not UTF-8")
	case depth(b) > maxDepth:
		return badBody(fmt.Sprintf("is nested deeper than %d levels", maxDepth))
	}
	if body := bytes.TrimSpace(b); len(body) == 0 || string(body) == "null" {
		b = []byte("{}")
	}
	if err := json.Unmarshal(b, v, decoding); err != nil {
		return refusalOf(b, v, err)
	}
	if !complete(reflect.ValueOf(v).Elem()) {
		return refusalOf(b, v, nil)
	}
	return nil
}

var errFault = errors.New("refused")

// readText reads a string of valid characters without NUL, which not every store can keep.
func readText(d *jsontext.Decoder, s *string) error {
	if d.PeekKind() != jsontext.KindString {
		return errFault
	}
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	text, fault := textOf(raw)
	if *s = text; fault != "" {
		return errFault
	}
	return nil
}

// textOf returns a JSON string's text, or what is wrong with it.
func textOf(raw jsontext.Value) (text, fault string) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), ""
	}
	b, err := jsontext.AppendUnquote(nil, raw)
	switch {
	case err != nil:
		return "", "must be text without broken escapes"
	case bytes.IndexByte(b, 0) >= 0:
		return "", "must not contain NUL characters"
	}
	return string(b), ""
}

// readWhole reads a whole number, however it is written: 300, 300.0 or 3e2.
func readWhole(d *jsontext.Decoder, n *int64) error {
	if d.PeekKind() != jsontext.KindNumber {
		return errFault
	}
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	whole, fault := wholeOf(raw)
	if *n = whole; fault != "" {
		return errFault
	}
	return nil
}

// maxExact bounds whole numbers with a fraction or an exponent: floats up to it are exact.
const maxExact = 1 << 53

// wholeOf returns a JSON number as a whole number, or what is wrong with it.
func wholeOf(raw jsontext.Value) (n int64, fault string) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err == nil {
		return n, ""
	}
	f, floatErr := strconv.ParseFloat(string(raw), 64)
	switch {
	case errors.Is(err, strconv.ErrRange) || errors.Is(floatErr, strconv.ErrRange) || math.Abs(f) > maxExact:
		return 0, "must be a whole number of at most 15 digits"
	case floatErr != nil || f != math.Trunc(f):
		return 0, "must be a whole number, not " + shorten(string(raw), maxShown)
	}
	return int64(f), ""
}

// maxShown bounds the part of a wrong number that an answer repeats.
const maxShown = 40

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

// refusalOf says what is wrong with a body that was refused, and leaves in v what is right. err is the decoder's first
// error, if any.
func refusalOf(b []byte, v any, err error) error {
	in := inspector{d: jsontext.NewDecoder(bytes.NewReader(b), jsontext.AllowInvalidUTF8(true),
		jsontext.AllowDuplicateNames(true))}
	whole := reflect.ValueOf(v).Elem()
	whole.SetZero()
	if walk := in.value(whole, "", nil); walk != nil && !errors.Is(walk, errEnough) {
		err = walk
	}
	syntactic, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case ok && !errors.Is(syntactic.Err, jsontext.ErrDuplicateName):
		return badBody(fmt.Sprintf("is not JSON: %v, at byte %d", syntactic.Err, syntactic.ByteOffset))
	case len(in.faults) > 0:
		return in.refusal()
	}
	return fmt.Errorf("decode body: %w", err)
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
