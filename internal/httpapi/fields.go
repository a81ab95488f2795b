package httpapi

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"lessor"
)

// field is a field of a wire type by its json tag. Fields of requests are pointers, slices or raw JSON, nil when
// absent; a field without omitempty or omitzero is required. In answers such a field is always present.
type field struct {
	name     string
	required bool
	index    int
	typ      reflect.Type
	embedded bool
}

// known caches fieldsOf, which is called for every request and every entry of a batch.
var known sync.Map // reflect.Type → []field

func fieldsOf(t reflect.Type) []field {
	if v, _ := known.Load(t); v != nil {
		if fs, ok := v.([]field); ok {
			return fs
		}
	}
	fs := make([]field, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			fs = append(fs, field{index: i, typ: f.Type, embedded: true})
		case f.IsExported() && name != "" && name != "-":
			fs = append(fs, field{name: name, required: !strings.HasPrefix(options, "omit"), index: i, typ: f.Type})
		}
	}
	known.Store(t, fs)
	return fs
}

// isOptional reports whether a body of type t may be left out.
func isOptional(t reflect.Type) bool {
	for _, f := range fieldsOf(t) {
		if f.required {
			return false
		}
	}
	return true
}

// absent returns the required fields that a request lacks, lists included.
func absent(found []lessor.FieldError, request any) []lessor.FieldError {
	return absentIn(found, reflect.ValueOf(request).Elem(), "")
}

func absentIn(found []lessor.FieldError, v reflect.Value, prefix string) []lessor.FieldError {
	for _, f := range fieldsOf(v.Type()) {
		value := v.Field(f.index)
		kind := value.Kind()
		switch {
		case len(found) >= mostMissing:
			return found
		case (kind == reflect.Pointer || kind == reflect.Slice) && value.IsNil():
			if f.required {
				found = append(found, lessor.FieldError{Field: prefix + f.name, Message: "is required"})
			}
		case kind == reflect.Pointer && f.typ.Elem().Kind() == reflect.Struct:
			found = absentIn(found, value.Elem(), prefix+f.name+".")
		case kind == reflect.Slice && f.typ.Elem().Kind() == reflect.Struct:
			for i := range value.Len() {
				found = absentIn(found, value.Index(i), fmt.Sprintf("%s%s[%d].", prefix, f.name, i))
			}
		}
	}
	return found
}
