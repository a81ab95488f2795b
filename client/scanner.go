package client

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// scanner reads the answers that a busy worker gets all the time, without reflection. It knows the usual form of JSON
// and gives up on anything else: the caller then uses encoding/json, which also says what is wrong. What it accepts it
// reads as encoding/json does: TestScannerReadsWhatEncodingJSONReads.
type scanner struct {
	b   []byte
	at  int
	bad bool
	// The last text of each slot: most are the same in each element of a list.
	texts [slots]string
}

// The slots of texts.
const (
	slotOther = iota
	slotType
	slotWorker
	slotTrace
	slotState
	slotClass
	slotWord
	slots
)

// scan reads an answer with read, and reports whether it could.
func scan(b []byte, read func(s *scanner)) bool {
	s := scanner{b: b}
	read(&s)
	s.space()
	return !s.bad && s.at == len(s.b)
}

func (s *scanner) fail() { s.bad, s.at = true, len(s.b) }

func (s *scanner) space() {
	for s.at < len(s.b) && (s.b[s.at] == ' ' || s.b[s.at] == '\n' || s.b[s.at] == '\t' || s.b[s.at] == '\r') {
		s.at++
	}
}

// peek returns the first byte of the next token, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.at == len(s.b) {
		return 0
	}
	return s.b[s.at]
}

func (s *scanner) expect(c byte) {
	if s.peek() != c {
		s.fail()
		return
	}
	s.at++
}

// more moves to the next element of a list or object that begins and ends with these bytes. Call it with a first that
// is true, until it returns false.
func (s *scanner) more(first *bool, begin, end byte) bool {
	if *first {
		*first = false
		s.expect(begin)
		if s.peek() == end {
			s.expect(end)
			return false
		}
		return !s.bad
	}
	if s.peek() == end {
		s.expect(end)
		return false
	}
	s.expect(',')
	return !s.bad
}

// field moves to the value of the next field of an object and returns its name.
func (s *scanner) field(first *bool) (name []byte, ok bool) {
	if !s.more(first, '{', '}') {
		return nil, false
	}
	name, plain := s.quoted()
	s.expect(':')
	if !plain {
		s.fail() // an escaped name
	}
	return name, !s.bad
}

// quoted reads a string and returns what is between the quotes. It is plain if it has no escapes and is valid UTF-8.
func (s *scanner) quoted() (text []byte, plain bool) {
	s.expect('"')
	ascii := true
	plain = true
	for i := s.at; i < len(s.b); i++ {
		switch c := s.b[i]; {
		case c == '"':
			text = s.b[s.at:i]
			s.at = i + 1
			return text, plain && (ascii || utf8.Valid(text))
		case c == '\\':
			plain = false
			i++
		case c < ' ':
			s.fail()
			return nil, false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	s.fail()
	return nil, false
}

// null reads null, if that is next.
func (s *scanner) null() bool {
	if s.peek() != 'n' {
		return false
	}
	s.word("null")
	return true
}

func (s *scanner) word(w string) {
	if !bytes.HasPrefix(s.b[s.at:], []byte(w)) {
		s.fail()
		return
	}
	s.at += len(w)
}

func (s *scanner) bool(v *bool) {
	switch s.peek() {
	case 't':
		s.word("true")
		*v = true
	case 'f':
		s.word("false")
		*v = false
	default:
		s.fail()
	}
}

// text reads a string. Texts of the same slot mostly equal each other, and then share their memory.
func (s *scanner) text(slot int, v *string) {
	s.space()
	start := s.at
	raw, plain := s.quoted()
	last := &s.texts[slot]
	switch {
	case s.bad:
	case !plain:
		if json.Unmarshal(s.b[start:s.at], v) != nil {
			s.fail()
		}
	case string(raw) == *last:
		*v = *last
	default:
		*last = string(raw)
		*v = *last
	}
}

// number reads a whole number. Other forms of numbers are left to encoding/json.
func (s *scanner) number() int64 {
	s.space()
	start := s.at
	s.anyNumber()
	n, err := strconv.ParseInt(string(s.b[start:s.at]), 10, 64)
	if err != nil {
		s.fail()
	}
	return n
}

func (s *scanner) int(v *int)     { *v = int(s.number()) }
func (s *scanner) int64(v *int64) { *v = s.number() }

// maxNesting bounds the recursion of skip.
const maxNesting = 100

// skip reads a value of any kind and returns it as it is.
func (s *scanner) skip(nesting int) []byte {
	start, first := s.at, true
	switch c := s.peek(); {
	case nesting > maxNesting:
		s.fail()
	case c == '{':
		for _, ok := s.field(&first); ok; _, ok = s.field(&first) {
			s.skip(nesting + 1)
		}
	case c == '[':
		for s.more(&first, '[', ']') {
			s.skip(nesting + 1)
		}
	case c == '"':
		if text, plain := s.quoted(); !plain && !json.Valid(s.b[s.at-len(text)-2:s.at]) {
			s.fail()
		}
	case c == 't':
		s.word("true")
	case c == 'f':
		s.word("false")
	case c == 'n':
		s.word("null")
	default:
		s.anyNumber()
	}
	return bytes.TrimSpace(s.b[start:s.at])
}

// anyNumber skips a number of any form.
func (s *scanner) anyNumber() {
	if s.peek() == '-' {
		s.at++
	}
	if s.peekIs("0") {
		s.at++
	} else {
		s.digits()
	}
	if s.peekIs(".") {
		s.at++
		s.digits()
	}
	if s.peekIs("eE") {
		if s.at++; s.peekIs("+-") {
			s.at++
		}
		s.digits()
	}
}

// peekIs reports whether the next byte is one of set.
func (s *scanner) peekIs(set string) bool {
	return s.at < len(s.b) && strings.IndexByte(set, s.b[s.at]) >= 0
}

// digits skips at least one digit.
func (s *scanner) digits() {
	start := s.at
	for s.peekIs("0123456789") {
		s.at++
	}
	if s.at == start {
		s.fail()
	}
}
