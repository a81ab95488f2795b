package plainjson

import (
	"encoding/json"
	"testing"
)

func TestMarshalLeavesMarkupAsItIs(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{"<a href=\"x\">b & c</a>\n", `"<a href=\"x\">b & c</a>\n"`},
		{json.RawMessage(`{ "a": "<&>" }`), `{"a":"<&>"}`},
		{map[string]any{"<": []byte("x"), "n": nil}, `{"<":"eA==","n":null}`},
	} {
		if got, err := Marshal(c.v); err != nil || string(got) != c.want {
			t.Errorf("%v is written as %s, %v; want %s", c.v, got, err, c.want)
		}
	}
	if b, err := Marshal(json.RawMessage(`{`)); err == nil {
		t.Errorf("what is no JSON is written as %s", b)
	}
}
