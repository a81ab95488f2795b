package httpapi

import (
	"reflect"
	"strings"
	"sync"
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

// complete reports whether a request has its required fields, lists included. A nil entry of a list has none.
func complete(v reflect.Value) bool {
	for _, f := range fieldsOf(v.Type()) {
		value := v.Field(f.index)
		kind := value.Kind()
		switch {
		case (kind == reflect.Pointer || kind == reflect.Slice) && value.IsNil():
			if f.required {
				return false
			}
		case kind == reflect.Pointer && f.typ.Elem().Kind() == reflect.Struct:
			if !complete(value.Elem()) {
				return false
			}
		case kind == reflect.Slice && f.typ.Elem().Kind() == reflect.Struct:
			for i := range value.Len() {
				if !complete(value.Index(i)) {
					return false
				}
			}
		}
	}
	return true
}
