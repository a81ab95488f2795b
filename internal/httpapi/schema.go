package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"lessor"
	"lessor/internal/token"
)

// object is a piece of the OpenAPI document.
type object map[string]any

// schemas collects the JSON Schemas of wire types by the rules of decode and encode. In a request a field without
// omitempty is required and any other may be null. In an answer every field without omitempty is present, and pointers
// and instants may be null.
type schemas struct {
	named object // components/schemas
}

// simple are the types whose wire form is not their Go form.
var simple = map[reflect.Type]object{
	reflect.TypeFor[lessor.JobID]():      {"type": "string", "format": "uuid"},
	reflect.TypeFor[lessor.LeaseID]():    {"type": "string", "format": "uuid"},
	reflect.TypeFor[lessor.TenantID]():   {"type": "string", "format": "uuid"},
	reflect.TypeFor[lessor.QuestionID](): {"type": "string", "format": "uuid"},
	reflect.TypeFor[lessor.TokenID]():    {"type": "string", "format": "uuid"},
	reflect.TypeFor[lessor.AlertID]():    {"type": "string", "format": "uuid"},
	reflect.TypeFor[lessor.AuditID]():    {"type": "string", "format": "uuid"},
	reflect.TypeFor[lessor.Instant]():    {"type": []any{"string", "null"}, "format": "date-time"},
	reflect.TypeFor[json.RawMessage](): {"type": []any{
		"object", "array", "string", "number", "boolean",
		"null",
	}},
	reflect.TypeFor[[]byte]():                {"type": "string", "contentEncoding": "base64"},
	reflect.TypeFor[lessor.Change[int64]]():  {"type": []any{"integer", "null"}},
	reflect.TypeFor[lessor.Change[bool]]():   {"type": []any{"boolean", "null"}},
	reflect.TypeFor[lessor.Change[string]](): {"type": []any{"string", "null"}},
	reflect.TypeFor[lessor.State]():          enum(lessor.States()...),
	reflect.TypeFor[lessor.Priority]():       enum("high", "normal", "low", "background"),
	reflect.TypeFor[lessor.BusySource]():     enum(lessor.BusyHost, lessor.BusySet, lessor.BusyFailClosed),
	reflect.TypeFor[lessor.DenialCode](): enum(lessor.NoCapacity, lessor.NextJobTooLarge, lessor.NoEligibleJob,
		lessor.Draining),
	reflect.TypeFor[lessor.Overlap](): enum(lessor.OverlapSkip, lessor.OverlapQueueOne, lessor.OverlapAllow,
		lessor.OverlapCancelPrevious),
	reflect.TypeFor[lessor.CatchUp](): enum(lessor.CatchUpLatest, lessor.CatchUpNone, lessor.CatchUpAll),
	reflect.TypeFor[lessor.TickOutcome](): enum(lessor.TickFired, lessor.TickCaughtUp, lessor.TickSkipped,
		lessor.TickCircuitOpen, lessor.TickMissed),
	reflect.TypeFor[lessor.RunStatus]():    enum(lessor.RunStatuses()...),
	reflect.TypeFor[lessor.CircuitState](): enum(lessor.CircuitClosed, lessor.CircuitOpen, lessor.CircuitHalfOpen),
	reflect.TypeFor[lessor.HeartbeatStatus](): enum(lessor.HeartbeatFresh, lessor.HeartbeatStale, lessor.HeartbeatDead,
		lessor.HeartbeatUnknown),
	reflect.TypeFor[lessor.RecoveryState](): enum(lessor.RecoveryIdle, lessor.RecoveryWatching,
		lessor.RecoveryCompleted),
	reflect.TypeFor[lessor.RecoveredStatus](): enum(lessor.RecoveredWatching, lessor.RecoveredReattached,
		lessor.RecoveredDead, lessor.RecoveredRunning, lessor.RecoveredFailed),
	reflect.TypeFor[lessor.CleanupState](): enum(lessor.CleanupScheduled, lessor.CleanupDone, lessor.CleanupDropped,
		lessor.CleanupFailed),
	reflect.TypeFor[workJob](): {
		"type": "object", "description": "A Job without the fields that have their default value.",
		"required": []any{"job_id", "type", "priority", "payload", "created_at", "attempt", "max_attempts", "trace_id"},
	},
	reflect.TypeFor[token.Role]():  enum(token.Roles()...),
	reflect.TypeFor[lessor.Code](): codeEnum(),
}

func enum[T ~string](values ...T) object {
	vs := make([]any, len(values))
	for i, v := range values {
		vs[i] = string(v)
	}
	return object{"type": "string", "enum": vs}
}

func codeEnum() object {
	var cs []lessor.Code
	for c := range statuses {
		cs = append(cs, c)
	}
	slices.Sort(cs)
	return enum(cs...)
}

// of returns the schema of t; structs become components and are referred to.
func (s schemas) of(t reflect.Type, request bool) object {
	if o, ok := simple[t]; ok {
		return o
	}
	if v, ok := reflect.TypeAssert[interface{ variants() []any }](reflect.Zero(t)); ok {
		return s.anyOf(v.variants())
	}
	switch t.Kind() {
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem(), request)}
	case reflect.Pointer:
		return orNull(s.of(t.Elem(), request))
	case reflect.Struct:
		return s.component(t, request)
	}
	panic(fmt.Sprintf("no schema for %v", t))
}

// component describes a struct once, under its name.
func (s schemas) component(t reflect.Type, request bool) object {
	name := componentName(t)
	if s.named[name] == nil {
		o := object{"type": "object"}
		s.named[name] = o
		properties, required := object{}, []any{}
		s.properties(t, request, name, properties, &required)
		if len(properties) > 0 {
			o["properties"] = properties
		}
		if len(required) > 0 {
			o["required"] = required
		}
		if request {
			o["additionalProperties"] = false
		}
	}
	return object{"$ref": "#/components/schemas/" + name}
}

func (s schemas) properties(t reflect.Type, request bool, component string, properties object, required *[]any) {
	for _, f := range fieldsOf(t) {
		if f.embedded {
			s.properties(f.typ, request, component, properties, required)
			continue
		}
		typ := f.typ
		if request && typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		o := bounded(s.of(typ, request), component+"."+f.name)
		if request && !f.required {
			o = orNull(o)
		}
		properties[f.name] = o
		if f.required {
			*required = append(*required, f.name)
		}
	}
}

func (s schemas) anyOf(values []any) object {
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = s.of(reflect.TypeOf(v), false)
	}
	return object{"anyOf": list}
}

// orNull also permits null.
func orNull(o object) object {
	typ, ok := o["type"].(string)
	switch {
	case ok:
		o = maps.Clone(o)
		o["type"] = []any{typ, "null"}
		if values, ok := o["enum"].([]any); ok {
			o["enum"] = append(slices.Clone(values), nil)
		}
	case o["$ref"] != nil:
		o = object{"anyOf": []any{o, object{"type": "null"}}}
	}
	return o
}

// componentName returns the type's name without package, with type parameters joined, as a public name.
func componentName(t reflect.Type) string {
	name, param, _ := strings.Cut(t.Name(), "[")
	if i := strings.LastIndex(param, "."); i >= 0 {
		name = strings.TrimSuffix(param[i+1:], "]") + "_" + name
	}
	if t == reflect.TypeFor[token.Ask]() {
		name = "tokenAsk" // "Ask" alone says too little outside its package
	}
	r := []rune(name)
	r[0] = unicode.ToUpper(r[0])
	return string(r)
}
