package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustCompile(t testing.TB, raw string) *Schema {
	t.Helper()
	s, err := Compile([]byte(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return s
}

func TestCheckNamesTheField(t *testing.T) {
	for _, c := range []struct {
		name, schema, payload string
		want                  []Fault
	}{
		{"agrees", `{"type": "object"}`, `{}`, nil},
		{"true", `true`, `{"a": 1}`, nil},
		{"false", `false`, `{}`, []Fault{{"payload", "false schema"}}},
		{"missing", `{"required": ["to", "at"]}`, `{}`, []Fault{{"payload", "missing properties 'to', 'at'"}}},
		{
			"nested", `{"properties": {"items": {"items": {"properties": {"n": {"type": "integer"}}}}}}`,
			`{"items": [{"n": 1}, {"n": 1.5}, {"n": "x"}]}`,
			[]Fault{
				{"payload.items[1].n", "got number, want integer"},
				{"payload.items[2].n", "got string, want integer"},
			},
		},
		{
			"unknown", `{"properties": {"a": true}, "additionalProperties": false}`, `{"b": 1}`,
			[]Fault{{"payload", "additional properties 'b' not allowed"}},
		},
		{
			"unevaluated", `{"allOf": [{"properties": {"a": true}}], "unevaluatedProperties": false}`,
			`{"a": 1, "b": 1}`,
			[]Fault{{"payload.b", "false schema"}},
		},
		{
			"reference", `{"$defs": {"id": {"type": "string"}}, "properties": {"id": {"$ref": "#/$defs/id"}}}`,
			`{"id": 5}`,
			[]Fault{{"payload.id", "got number, want string"}},
		},
		{
			"escaped reference",
			`{"$defs": {"a/b~ c": {"type": "string"}}, "properties": {"id": {"$ref": "#/$defs/a~1b~0%20c"}}}`,
			`{"id": 5}`,
			[]Fault{{"payload.id", "got number, want string"}},
		},
		{"anchor", `{"$id": "https://example.org/x", "$defs": {"x": {"$anchor": "id", "type": "string"}},
			"properties": {"id": {"$ref": "#id"}}}`, `{"id": 5}`, []Fault{{"payload.id", "got number, want string"}}},
		{
			"recursion", `{"properties": {"next": {"$ref": "#"}}, "additionalProperties": false}`,
			`{"next": {"next": {"x": 1}}}`,
			[]Fault{{"payload.next.next", "additional properties 'x' not allowed"}},
		},
		{
			"dynamic recursion",
			`{"$dynamicAnchor": "n", "properties": {"next": {"$dynamicRef": "#n"}}, "additionalProperties": false}`,
			`{"next": {"x": 1}}`,
			[]Fault{{"payload.next", "additional properties 'x' not allowed"}},
		},
		{
			"large integers are exact", `{"properties": {"n": {"const": 9007199254740993}}}`, `{"n": 9007199254740992}`,
			[]Fault{{"payload.n", "value must be 9007199254740993"}},
		},
		{"decimals are exact", `{"properties": {"n": {"multipleOf": 0.01}}}`, `{"n": 4.35}`, nil},
		{"1.0 is an integer", `{"properties": {"n": {"type": "integer"}}}`, `{"n": 1.0}`, nil},
		{"format is an annotation", `{"properties": {"n": {"format": "uuid"}}}`, `{"n": "x"}`, nil},
		{"not JSON", `true`, `{`, []Fault{{"payload", "is not JSON"}}},
		{"two values", `true`, `{} {}`, []Fault{{"payload", "is not JSON"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, mustCompile(t, c.schema).Check([]byte(c.payload))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	deep := strings.Repeat(`{"not":`, maxDepth+1) + "true" + strings.Repeat("}", maxDepth+1)
	for _, c := range []struct{ name, schema, says string }{
		{"not JSON", `{`, "is not JSON"},
		{"not a schema", `[]`, "is neither an object nor"},
		{"null", `null`, "is neither an object nor"},
		{"too large", `{"title": "` + strings.Repeat("x", MaxSize) + `"}`, "is larger than 64 KiB"},
		{"against the draft", `{"type": "text"}`, "schema.type got string, want array, or value must be one of '"},
		{"against the draft, deep", `{"properties": {"a": {"minLength": -1}}}`, "schema.properties.a.minLength"},
		{"another draft", `{"$schema": "http://json-schema.org/draft-07/schema#"}`, "must be of the draft"},
		{
			"another draft, inside", `{"$defs": {"a": {"$schema": "http://json-schema.org/draft-04/schema#"}}}`,
			"must be of the draft",
		},
		{"id inside", `{"$defs": {"a": {"$id": "b"}}}`, "has an $id at #/$defs/a"},
		{"older reference", `{"$recursiveRef": "#"}`, "$recursiveRef"},
		{"reference to nothing", `{"$ref": "#/$defs/a"}`, "leads to no schema"},
		{"reference to no anchor", `{"$ref": "#a"}`, "leads to no schema"},
		{"reference to what is no schema", `{"enum": [{"type": "string"}], "$ref": "#/enum/0"}`, "leads to no schema"},
		{"reference that cannot be read", `{"$ref": "#/%zz"}`, "cannot be read"},
		{"wrong pattern", `{"properties": {"a": {"pattern": "("}}}`, "has a wrong pattern at #/properties/a"},
		{"pattern that RE2 lacks", `{"pattern": "(?=a)"}`, "has a wrong pattern"},
		{"pattern that grows", `{"patternProperties": {"(abc){900}": true}}`, "instructions"},
		{"huge number", `{"minimum": 1e999999}`, "number that is too large"},
		{"many", `{"allOf": [` + strings.Repeat("true,", maxNodes) + `true]}`, "more than 2000 subschemas"},
		{"deep", deep, "deeper than 64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Compile([]byte(c.schema)); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error that says %s", err, c.says)
			}
		})
	}
}

func TestCompileAcceptsTheBounds(t *testing.T) {
	mustCompile(t, strings.Repeat(`{"not":`, maxDepth)+"true"+strings.Repeat("}", maxDepth))
	mustCompile(t, `{"allOf": [`+strings.Repeat("true,", maxNodes-2)+`true]}`)
	mustCompile(t, `{"title": "`+strings.Repeat("x", MaxSize-len(`{"title": ""}`))+`"}`)
	mustCompile(t, `{"$schema": "https://json-schema.org/draft/2020-12/schema", "maximum": 1e400}`)
}

func TestFaultsAreBounded(t *testing.T) {
	name := strings.Repeat("ä", 500)
	s := mustCompile(t, `{"additionalProperties": {"const": "`+name+`"}}`)
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `,"%s%d": 1`, name, i)
	}
	all := s.Check([]byte("{" + b.String()[1:] + "}"))
	if len(all) == 0 || len(all) > maxFaults {
		t.Fatalf("%d faults, want 1 to %d", len(all), maxFaults)
	}
	for _, f := range all {
		if len(f.Field) > maxField+3 || len(f.Message) > maxMessage+3 {
			t.Fatalf("a fault is %d and %d bytes long", len(f.Field), len(f.Message))
		}
	}
}
