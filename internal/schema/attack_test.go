package schema

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestReferencesOpenNothing submits schemas that point at a file, a FIFO on which a reader would hang, and a listener
// that would see a caller.
func TestReferencesOpenNothing(t *testing.T) {
	dir := t.TempDir()
	file, fifo := filepath.Join(dir, "schema.json"), filepath.Join(dir, "fifo")
	if err := os.WriteFile(file, []byte(`{"type": "object"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skipf("no FIFO here: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	called := make(chan struct{})
	go func() {
		if conn, err := listener.Accept(); err == nil {
			conn.Close()
			close(called)
		}
	}()
	for _, target := range []string{
		"file://" + file, "file://" + fifo, file, fifo, "schema.json", "../schema.json", "./fifo", "?x", "",
		"http://" + listener.Addr().String() + "/a", "https://" + listener.Addr().String() + "/a",
		"//" + listener.Addr().String() + "/a", "ftp://" + listener.Addr().String(), "lessor:///other",
		"lessor:///schema#x",
		"urn:uuid:0", "https://json-schema.org/draft/2020-12/meta/core", "https://json-schema.org/../loader.go",
	} {
		for _, form := range []string{
			`{"$ref": %q}`, `{"$dynamicRef": %q}`, `{"$recursiveRef": %q}`, `{"$schema": %q}`,
			`{"$defs": {"a": {"$ref": %q}}}`, `{"properties": {"const": {"$ref": %q}}}`,
			`{"items": {"not": {"$dynamicRef": %q}}}`,
			`{"$id": %q, "$ref": "other"}`, `{"$defs": {"a": {"$id": %q, "$ref": "#/x"}}}`,
			`{"dependencies": {"a": {"$ref": %q}}}`,
			`{"x": {"$ref": %q}, "$ref": "#/x"}`, `{"$defs": {"a": {"$id": "/b", "$schema": %q}}}`,
		} {
			raw := fmt.Sprintf(form, target)
			if _, err := Compile([]byte(raw)); err == nil {
				t.Errorf("%s was accepted", raw)
			}
			// The second wall, had the first a hole.
			doc, err := jsonschema.UnmarshalJSON(strings.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = compile(doc)
		}
	}
	select {
	case <-called:
		t.Error("a schema opened a connection")
	default:
	}
}

// TestCheckIsBounded checks what would take hours, or the process, if it were done.
func TestCheckIsBounded(t *testing.T) {
	var doubling strings.Builder
	for i := range 40 {
		fmt.Fprintf(&doubling, `"a%d": {"allOf": [{"$ref": "#/$defs/a%d"}, {"$ref": "#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	var values []string
	for i := range 8000 {
		values = append(values, fmt.Sprint(i))
	}
	nested := strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)
	for _, c := range []struct{ name, schema, payload string }{
		{
			"doubling references", `{"$ref": "#/$defs/a0", "$defs": {` + doubling.String() +
				`"a40": {"type": "object"}}}`,
			`{}`,
		},
		{
			"doubling with depth", `{"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}`,
			strings.Repeat(`{"a":`, 40) + "{}" + strings.Repeat("}", 40),
		},
		{
			"doubling by patterns, in a negation",
			`{"not": {"$ref": "#/$defs/x"}, "$defs": {"x": {"type": "object", "patternProperties":
				{"a": {"$ref": "#/$defs/x"}, "^a": {"$ref": "#/$defs/x"}}}}}`,
			strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40),
		},
		{"a circle", `{"$ref": "#"}`, `{}`},
		{"a circle of two", `{"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$dynamicRef": "#b"}]},
			"b": {"$dynamicAnchor": "b", "$ref": "#/$defs/a"}}}`, `{}`},
		{
			"many items, many values", `{"properties": {"a": {"items": {"enum": [` + strings.Join(values, ",") +
				`]}}}}`,
			`{"a": [` + strings.Repeat("-1,", 60000) + `-1]}`,
		},
		{
			"a slow pattern on a long text", `{"properties": {"a": {"pattern": "(x+x+)+y(a|b|c){100}"}}}`,
			`{"a": "` + strings.Repeat("x", 250_000) + `"}`,
		},
		{"a deep payload", `{"properties": {"a": {"$ref": "#"}}}`, nested},
		{"a huge number", `{"properties": {"a": {"minimum": 1}}}`, `{"a": 1e999999999}`},
		{"a tiny number", `{"properties": {"a": {"type": "integer"}}}`, `{"a": 1e-999999}`},
		{"a long number", `{"properties": {"a": {"multipleOf": 3}}}`, `{"a": 1` + strings.Repeat("0", 100_000) + `}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustCompile(t, c.schema)
			start := time.Now()
			if got := s.Check([]byte(c.payload)); len(got) == 0 {
				t.Error("it was accepted")
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestHonestPayloadsAreAffordable checks a full payload of 256 KiB against an ordinary schema.
func TestHonestPayloadsAreAffordable(t *testing.T) {
	s := mustCompile(t, `{
		"type": "object", "required": ["lines"], "additionalProperties": false,
		"properties": {"lines": {"type": "array", "items": {"$ref": "#/$defs/line"}}},
		"$defs": {"line": {
			"type": "object", "required": ["id", "amount"], "additionalProperties": false,
			"properties": {
				"id": {"type": "string", "pattern": "^[a-z]{1,8}-[0-9]+$"},
				"amount": {"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 40}]},
				"kind": {"enum": ["debit", "credit", "fee", "tax"]}
			}
		}}
	}`)
	var b strings.Builder
	for i := 0; b.Len() < 255<<10; i++ {
		fmt.Fprintf(&b, `,{"id": "line-%d", "amount": %d, "kind": "tax"}`, i, i)
	}
	if got := s.Check([]byte(`{"lines": [` + b.String()[1:] + `]}`)); got != nil {
		t.Errorf("got %v", got)
	}
}

func FuzzCompile(f *testing.F) {
	f.Add(`{"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"type": "string"}]}}}`, `{"a": [1, "x", null]}`)
	f.Add(`{"$dynamicAnchor": "n", "properties": {"a": {"$dynamicRef": "#n"}}, "unevaluatedProperties": false}`,
		`{"a": {"b": 1}}`)
	f.Add(`{"patternProperties": {"^a": {"minimum": 1e3}}, "items": {"uniqueItems": true}}`, `[[1, 1.0], {"a": 3}]`)
	f.Fuzz(func(t *testing.T, schema, payload string) {
		s, err := Compile([]byte(schema))
		if err != nil {
			return
		}
		if first, again := s.Check([]byte(payload)), s.Check([]byte(payload)); (len(first) == 0) != (len(again) == 0) {
			t.Fatalf("%v once and %v again", first, again)
		}
	})
}
