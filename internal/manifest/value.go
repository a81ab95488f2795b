package manifest

import (
	"bytes"
	"encoding/json"
)

// kind is the kind of a value in JSON.
type kind string

const (
	null    kind = "null"
	boolean kind = "true or false"
	number  kind = "a number"
	text    kind = "text"
	list    kind = "a list"
	object  kind = "a mapping"
)

// A value is a part of a document, with its place in the file.
type value struct {
	kind    kind
	scalar  string // a text without quotes, a number or boolean as JSON writes it
	items   []*value
	members []member // in the order of the file
	line    int
	column  int
}

type member struct {
	name  string
	key   *value
	value *value
}

// member returns the value of a field, nil if it is missing or null.
func (v *value) member(name string) *value {
	for _, e := range v.members {
		if e.name == name && e.value.kind != null {
			return e.value
		}
	}
	return nil
}

// text returns the scalar of a text, "" for every other value.
func (v *value) text() string {
	if v == nil || v.kind != text {
		return ""
	}
	return v.scalar
}

func (v *value) isTrue() bool { return v != nil && v.kind == boolean && v.scalar == "true" }

// write appends v as JSON.
func (v *value) write(b *bytes.Buffer) {
	switch v.kind {
	case null:
		b.WriteString("null")
	case boolean, number:
		b.WriteString(v.scalar)
	case text:
		writeText(b, v.scalar)
	case list:
		b.WriteByte('[')
		for i, item := range v.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.write(b)
		}
		b.WriteByte(']')
	case object:
		b.WriteByte('{')
		for i, e := range v.members {
			if i > 0 {
				b.WriteByte(',')
			}
			writeText(b, e.name)
			b.WriteByte(':')
			e.value.write(b)
		}
		b.WriteByte('}')
	}
}

func writeText(b *bytes.Buffer, s string) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s)       // cannot fail: it writes text to memory
	b.Truncate(b.Len() - 1) // Encode ends the line
}
