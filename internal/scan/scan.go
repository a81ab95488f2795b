// Package scan reads the JSON that a busy worker and its server exchange all the time, without reflection. It knows the
// usual form of JSON and gives up on anything else: the caller then uses a general decoder, which also says what is
// wrong. client and httpapi call it, and compare what it reads with what their general decoders read.
package scan

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// Scanner is at a place in a JSON text. After it has given up, every method does nothing.
type Scanner struct {
	b      []byte
	at     int
	bad    bool
	strict bool
	names  [][]byte // in a strict scanner, of the objects that it is in
	room   [16][]byte
	// The last text of each slot: most are the same in each element of a list.
	texts [slots]string
}

// slots is the number of slots for texts.
const slots = 8

// Read reads b with read, and reports whether it could.
func Read(b []byte, read func(s *Scanner)) bool { return (&Scanner{b: b}).whole(read) }

// ReadStrictly is Read for input that must not name a field twice. It also gives up on texts with escapes.
func ReadStrictly(b []byte, read func(s *Scanner)) bool {
	s := &Scanner{b: b, strict: true}
	s.names = s.room[:0]
	return s.whole(read)
}

// Valid reports whether b is one JSON value. It does not know every form of JSON, as Read.
func Valid(b []byte) bool {
	s := Scanner{b: b}
	s.skip(0)
	s.space()
	return !s.bad && s.at == len(b)
}

func (s *Scanner) whole(read func(s *Scanner)) bool {
	read(s)
	s.space()
	return !s.bad && s.at == len(s.b)
}

// Fail gives up.
func (s *Scanner) Fail() { s.bad, s.at = true, len(s.b) }

func (s *Scanner) space() {
	for s.at < len(s.b) && (s.b[s.at] == ' ' || s.b[s.at] == '\n' || s.b[s.at] == '\t' || s.b[s.at] == '\r') {
		s.at++
	}
}

// peek returns the first byte of the next token, 0 at the end.
func (s *Scanner) peek() byte {
	s.space()
	if s.at == len(s.b) {
		return 0
	}
	return s.b[s.at]
}

// expect moves behind a byte, which must be next.
func (s *Scanner) expect(c byte) {
	if s.peek() != c {
		s.Fail()
		return
	}
	s.at++
}

// more moves to the next element of a list or object that begins and ends with these bytes.
func (s *Scanner) more(begun *bool, begin, end byte) bool {
	switch {
	case !*begun:
		*begun = true
		s.expect(begin)
		if s.peek() != end {
			return !s.bad
		}
	case s.peek() != end:
		s.expect(',')
		return !s.bad
	}
	s.expect(end)
	return false
}

// Object is a place in an object. Its zero value is the place before an object.
type Object struct {
	begun bool
	names int // of the objects around it
}

// maxNames bounds the fields of an object in a strict scanner, which compares each name with those before it.
const maxNames = 64

// Field moves to the value of the next field of an object and returns its name; false at its end.
func (s *Scanner) Field(o *Object) (name []byte, ok bool) {
	if !o.begun {
		o.names = len(s.names)
	}
	if !s.more(&o.begun, '{', '}') {
		s.names = s.names[:o.names]
		return nil, false
	}
	name, plain := s.quoted()
	s.expect(':')
	if !plain { // an escaped name
		s.Fail()
	}
	if s.strict {
		s.once(name, s.names[o.names:])
	}
	return name, !s.bad
}

func (s *Scanner) once(name []byte, before [][]byte) {
	for _, n := range before {
		if string(n) == string(name) {
			s.Fail()
		}
	}
	if len(before) == maxNames {
		s.Fail()
	}
	s.names = append(s.names, name)
}

// special marks the bytes that do not stand for themselves in a string, or not alone.
var special = func() (is [256]bool) {
	for c := range is {
		is[c] = c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf
	}
	return is
}()

// IsPlain reports whether a text is its own form in JSON, between quotes.
func IsPlain(text string) bool {
	for i := range len(text) {
		if special[text[i]] {
			return false
		}
	}
	return true
}

// quoted reads a string and returns what is between the quotes. It is plain if it has no escapes and is valid UTF-8.
func (s *Scanner) quoted() (text []byte, plain bool) {
	s.expect('"')
	rest := s.b[s.at:]
	ascii, escaped := true, false
	for i := plainWords(rest); i < len(rest); i++ {
		switch c := rest[i]; {
		case !special[c]:
		case c == '"':
			s.at += i + 1
			return rest[:i], !escaped && (ascii || utf8.Valid(rest[:i]))
		case c == '\\':
			escaped = true
			i++ // what is escaped
			i += plainWords(rest[min(i+1, len(rest)):])
		case c < ' ':
			s.Fail()
			return nil, false
		default:
			ascii = false
		}
	}
	s.Fail()
	return nil, false
}

// plainWords returns how many bytes at the beginning of b are not special, as far as they come in words of eight.
func plainWords(b []byte) (n int) {
	const each, top = 0x01_01_01_01_01_01_01_01, 0x80_80_80_80_80_80_80_80
	for ; len(b)-n >= 8; n += 8 {
		w := binary.LittleEndian.Uint64(b[n:])
		// A subtraction borrows from the top bit of a byte that is too small. The byte above may then seem special too.
		if (w|(w-each*' ')|((w^each*'"')-each)|((w^each*'\\')-each))&top != 0 {
			break
		}
	}
	return n
}

// Null reads null, if that is next.
func (s *Scanner) Null() bool {
	if s.peek() != 'n' {
		return false
	}
	s.word("null")
	return true
}

func (s *Scanner) word(w string) {
	if !bytes.HasPrefix(s.b[s.at:], []byte(w)) {
		s.Fail()
		return
	}
	s.at += len(w)
}

// Bool reads true or false.
func (s *Scanner) Bool(v *bool) {
	switch s.peek() {
	case 't':
		s.word("true")
		*v = true
	case 'f':
		s.word("false")
		*v = false
	default:
		s.Fail()
	}
}

// Text reads a string. Texts of the same slot mostly equal each other, and then share their memory.
func (s *Scanner) Text(slot int, v *string) {
	s.space()
	start := s.at
	raw, plain := s.quoted()
	last := &s.texts[slot]
	switch {
	case s.bad:
	case !plain:
		if s.strict || json.Unmarshal(s.b[start:s.at], v) != nil {
			s.Fail()
		}
	case string(raw) == *last:
		*v = *last
	default:
		*last = string(raw)
		*v = *last
	}
}

// OptionalText reads null, or a string.
func (s *Scanner) OptionalText(slot int, v **string) {
	if *v = nil; !s.Null() {
		*v = new(string)
		s.Text(slot, *v)
	}
}

// Plain reads a string without escapes and returns it with and without its quotes. Both are parts of the input.
func (s *Scanner) Plain() (quoted, text []byte) {
	s.space()
	start := s.at
	text, plain := s.quoted()
	if !plain {
		s.Fail()
		return nil, nil
	}
	return s.b[start:s.at], text
}

// Optional reads null, or a value with a reader of it.
func Optional[T any](s *Scanner, into **T, read func(*T)) {
	switch {
	case *into != nil: // the field is there twice
		s.Fail()
	case !s.Null():
		*into = new(T)
		read(*into)
	}
}

// maxRoom bounds the elements for which List makes room before it has seen them: as many as a batch may have.
const maxRoom = 1000

// List reads null, or a list with a reader of its elements. Most lists have elements of about the same length: after
// the first, it makes room for all.
func List[T any](s *Scanner, into *[]T, read func(*T)) {
	if *into != nil { // the field is there twice
		s.Fail()
	}
	if s.Null() {
		return
	}
	list, from := []T{}, s.at
	for begun := false; s.more(&begun, '[', ']'); {
		if len(list) == 1 {
			list = slices.Grow(list, min((len(s.b)-from)/(s.at-from), maxRoom))
		}
		list = append(list, *new(T))
		read(&list[len(list)-1])
	}
	*into = list
}
