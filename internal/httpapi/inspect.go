package httpapi

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"lessor"
	"lessor/internal/rules"
)

// inspector compares a body with the type that it should have and with the bounds of the document, and collects what
// differs. The decoder stops at the first mistake; the inspector goes on, so that a caller learns of all at once.
type inspector struct {
	d      *jsontext.Decoder
	code   lessor.Code
	faults []lessor.FieldError
}

var errEnough = errors.New("enough faults are known")

// refusal returns the faults as one refusal. A malformed body is reported as such, whatever its values are.
func (in *inspector) refusal() error {
	detail := "a value is not allowed"
	if in.code == lessor.CodeInvalidRequest {
		detail = "the request is not well-formed"
	}
	return &lessor.Error{Code: in.code, Detail: detail, Fields: in.faults}
}

// joined adds to a refusal the fields that another one names and that are neither named yet nor parts of what is.
func joined(err, more error) error {
	e, ok := errors.AsType[*lessor.Error](err)
	other, also := errors.AsType[*lessor.Error](more)
	if !ok || !also || len(e.Fields) == 0 {
		return err
	}
	all := *e
	for _, f := range other.Fields {
		if len(all.Fields) < rules.MaxFaults && !slices.ContainsFunc(e.Fields, func(known lessor.FieldError) bool {
			return known.Field == "body" || known.Field == f.Field || strings.HasPrefix(f.Field, known.Field+".")
		}) {
			all.Fields = append(slices.Clip(all.Fields), f)
		}
	}
	return &all
}

// malformed notes a field that is missing, does not exist or has the wrong type.
func (in *inspector) malformed(field, message string) error {
	in.code = lessor.CodeInvalidRequest
	return in.fault(field, message)
}

// wrong notes a value that is not allowed.
func (in *inspector) wrong(field, message string) error {
	if in.code == "" {
		in.code = lessor.CodeInvalidValue
	}
	return in.fault(field, message)
}

func (in *inspector) fault(field, message string) error {
	if field == "" {
		field = "body"
	}
	field = shorten(strings.ToValidUTF8(field, "�"), maxFieldName)
	in.faults = append(in.faults, lessor.FieldError{Field: field, Message: message})
	if len(in.faults) >= rules.MaxFaults {
		return errEnough
	}
	return nil
}

// maxFieldName bounds the part of a field name that an answer repeats.
const maxFieldName = 200

// value inspects the next value, which the document describes, and stores it in v if it is one of v's type.
func (in *inspector) value(v reflect.Value, field string, described object) error {
	t := plainType(v.Type())
	if t == reflect.TypeFor[stdjson.RawMessage]() {
		return in.raw(v, field)
	}
	want, kinds := wanted(t)
	kind := in.d.PeekKind()
	switch {
	case kind == jsontext.KindInvalid:
		_, err := in.d.ReadToken() // says what is wrong with the syntax
		return err
	case !strings.ContainsRune(kinds, rune(kind)):
		if err := in.malformed(field, "must be "+want+", not "+kindNames[kind]); err != nil {
			return err
		}
		return in.d.SkipValue()
	case t.Kind() == reflect.Struct:
		return in.object(v, field)
	case t.Kind() == reflect.Slice && t != reflect.TypeFor[[]byte]():
		return in.list(v, field, described)
	}
	return in.scalar(v, t.Kind(), field, described)
}

func (in *inspector) scalar(v reflect.Value, kind reflect.Kind, field string, described object) error {
	raw, err := in.d.ReadValue()
	if err != nil {
		return err
	}
	value, fault := plainValue(kind, raw)
	if fault == "" {
		fault, err = described.fault(value), json.Unmarshal(raw, v.Addr().Interface(), decoding)
	}
	if fault != "" {
		return in.wrong(field, fault)
	}
	return err
}

// plainValue returns a value of the right type, or what is wrong with it.
func plainValue(kind reflect.Kind, raw jsontext.Value) (value any, fault string) {
	switch kind {
	case reflect.String:
		value, fault = textOf(raw)
	case reflect.Slice: // of bytes
		var data []byte
		if json.Unmarshal(raw, &data, decoding) != nil { // stricter than encoding/base64, which ignores line ends
			fault = "must be base64 without line ends"
		}
	case reflect.Int64:
		value, fault = wholeOf(raw)
	case reflect.Float64:
		f, err := strconv.ParseFloat(string(raw), 64)
		if value = f; err != nil {
			fault = "must be a smaller number"
		}
	}
	return value, fault
}

// object inspects the fields of a struct.
func (in *inspector) object(v reflect.Value, field string) error {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if _, err := in.d.ReadToken(); err != nil {
		return err
	}
	if field != "" {
		field += "."
	}
	given := map[string]bool{} // false = null
	for in.d.PeekKind() == jsontext.KindString {
		name, err := in.d.ReadToken()
		if err != nil {
			return err
		}
		if err := in.member(v, field, name.String(), given); err != nil {
			return err
		}
	}
	if _, err := in.d.ReadToken(); err != nil {
		return err
	}
	return in.missing(v.Type(), field, given)
}

// missing notes the required fields of a struct that were not given.
func (in *inspector) missing(t reflect.Type, prefix string, given map[string]bool) error {
	for _, f := range fieldsOf(t) {
		if f.required && !given[f.name] {
			if err := in.malformed(prefix+f.name, "is required"); err != nil {
				return err
			}
		}
	}
	return nil
}

// member inspects one field of an object. A field that is null counts as absent.
func (in *inspector) member(v reflect.Value, prefix, name string, given map[string]bool) error {
	var field reflect.Value
	for _, f := range fieldsOf(v.Type()) {
		if f.name == name {
			field = v.Field(f.index)
		}
	}
	_, twice := given[name]
	given[name] = in.d.PeekKind() != jsontext.KindNull
	var err error
	switch {
	case !field.IsValid():
		err = in.malformed(prefix+name, "is not a field of this request")
	case twice:
		err = in.malformed(prefix+name, "is there twice")
	case given[name]:
		return in.value(field, prefix+name, bounds[componentName(v.Type())+"."+name])
	}
	if err != nil {
		return err
	}
	return in.d.SkipValue()
}

func (in *inspector) list(v reflect.Value, field string, described object) error {
	if _, err := in.d.ReadToken(); err != nil {
		return err
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0)) // an empty list is there
	for i := 0; in.d.PeekKind() != jsontext.KindEndArray; i++ {
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		if err := in.value(v.Index(i), fmt.Sprintf("%s[%d]", field, i), nil); err != nil {
			return err
		}
	}
	if fault := described.rangeFault("Items", float64(v.Len())); fault != "" {
		if err := in.wrong(field, fault); err != nil {
			return err
		}
	}
	_, err := in.d.ReadToken()
	return err
}

// raw inspects a payload, result or checkpoint: it is kept as it is, but has no field twice.
func (in *inspector) raw(v reflect.Value, field string) error {
	raw, err := in.d.ReadValue()
	if err != nil {
		return err
	}
	_, err = jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowInvalidUTF8(true)).ReadValue()
	if twice, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return in.malformed(field+fieldPath(twice.JSONPointer), "is there twice")
	}
	v.SetBytes(bytes.Clone(raw))
	return nil
}

// fieldPath turns a JSON pointer into the usual form: /items/3/id becomes .items[3].id.
func fieldPath(p jsontext.Pointer) string {
	var b strings.Builder
	for name := range p.Tokens() {
		if _, err := strconv.ParseUint(name, 10, 32); err == nil {
			b.WriteString("[" + name + "]")
		} else {
			b.WriteString("." + name)
		}
	}
	return b.String()
}

// plainType is the type of a field's value when it is there.
func plainType(t reflect.Type) reflect.Type {
	switch {
	case t == reflect.TypeFor[lessor.Change[int64]]():
		return reflect.TypeFor[int64]()
	case t == reflect.TypeFor[lessor.Change[bool]]():
		return reflect.TypeFor[bool]()
	case t == reflect.TypeFor[lessor.Change[string]]():
		return reflect.TypeFor[string]()
	case t.Kind() == reflect.Pointer:
		return t.Elem()
	}
	return t
}

// wanted returns the JSON type of a Go type, in words and as kinds.
func wanted(t reflect.Type) (name, kinds string) {
	if t == reflect.TypeFor[[]byte]() {
		return "a string", `"`
	}
	switch t.Kind() {
	case reflect.String:
		return "a string", `"`
	case reflect.Bool:
		return "a boolean", "tf"
	case reflect.Int64:
		return "a whole number", "0"
	case reflect.Float64:
		return "a number", "0"
	case reflect.Slice:
		return "an array", "["
	}
	return "an object", "{"
}

// kindNames are the usual names of the JSON types.
var kindNames = map[jsontext.Kind]string{
	jsontext.KindNull: "null", jsontext.KindTrue: "a boolean", jsontext.KindFalse: "a boolean",
	jsontext.KindString: "a string",
	jsontext.KindNumber: "a number", jsontext.KindBeginObject: "an object", jsontext.KindBeginArray: "an array",
}
