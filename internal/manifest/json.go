package manifest

import (
	"bytes"
	"encoding/json"
	"strings"
)

// jsonReader reads a file that is known to be valid JSON.
type jsonReader struct {
	raw     []byte
	decoder *json.Decoder
	line    int
	begin   int // of the line
	at      int // lines were counted up to here
}

func readJSON(raw []byte) *value {
	r := jsonReader{raw: raw, decoder: json.NewDecoder(bytes.NewReader(raw)), line: 1}
	r.decoder.UseNumber()
	return r.value()
}

// value reads one value. The caller has called json.Valid, which bounds the depth.
func (r *jsonReader) value() *value {
	v := r.place()
	token, _ := r.decoder.Token()
	switch t := token.(type) {
	case nil:
		v.kind = null
	case bool:
		v.kind, v.scalar = boolean, "false"
		if t {
			v.scalar = "true"
		}
	case json.Number:
		v.kind, v.scalar = number, t.String()
	case string:
		v.kind, v.scalar = text, t
	case json.Delim:
		v.kind = list
		if t == '{' {
			v.kind = object
		}
		for r.decoder.More() {
			if t == '{' {
				key := r.value()
				v.members = append(v.members, member{key.scalar, key, r.value()})
			} else {
				v.items = append(v.items, r.value())
			}
		}
		_, _ = r.decoder.Token() // the closing bracket
	}
	return v
}

// place returns an empty value at the position of the next token.
func (r *jsonReader) place() *value {
	start := int(r.decoder.InputOffset())
	for start < len(r.raw) && strings.IndexByte(" \t\r\n,:", r.raw[start]) >= 0 {
		start++
	}
	for ; r.at < start; r.at++ {
		if r.raw[r.at] == '\n' {
			r.line, r.begin = r.line+1, r.at+1
		}
	}
	return &value{line: r.line, column: start - r.begin + 1}
}
