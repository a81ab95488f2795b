// Package indent indents JSON for people, and bounds the result: with deep nesting, indentation can make a text a
// thousand times longer. Pages and commands call it.
package indent

import "unicode/utf8"

// JSON returns raw, which must be valid JSON, as json.Indent with two spaces would write it after prefix. If that is
// longer than limit bytes, it returns only the beginning, and whole is false.
func JSON(raw []byte, prefix string, limit int) (text []byte, whole bool) {
	w := writer{prefix: prefix, limit: limit}
	for i := 0; i < len(raw) && len(w.text) <= limit; i++ {
		if raw[i] == '"' {
			end := endOfString(raw, i)
			w.put(raw[i:end])
			i = end - 1
			continue
		}
		w.structure(raw[i])
	}
	if len(w.text) <= limit {
		return w.text, true
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(w.text[cut]) {
		cut--
	}
	return w.text[:cut], false
}

// endOfString returns the end of the string that begins at raw[start].
func endOfString(raw []byte, start int) int {
	for i := start + 1; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

type writer struct {
	text   []byte
	prefix string
	limit  int
	depth  int
	opened bool // the last byte opened an object or list
}

// structure writes a byte that is not part of a string.
func (w *writer) structure(b byte) {
	switch b {
	case ' ', '\t', '\r', '\n':
	case '{', '[':
		w.put([]byte{b})
		w.depth++
		w.opened = true
	case '}', ']':
		w.depth--
		if !w.opened { // an empty object or list stays on its line
			w.line()
		}
		w.opened = false
		w.text = append(w.text, b)
	case ',':
		w.text = append(w.text, b)
		w.line()
	case ':':
		w.text = append(w.text, ':', ' ')
	default:
		w.put([]byte{b})
	}
}

// put writes the beginning of a value or a part of it.
func (w *writer) put(b []byte) {
	if w.opened {
		w.line()
		w.opened = false
	}
	w.text = append(w.text, b[:min(len(b), w.limit+1)]...)
}

func (w *writer) line() {
	w.text = append(append(w.text, '\n'), w.prefix...)
	for range w.depth {
		w.text = append(w.text, ' ', ' ')
	}
}
