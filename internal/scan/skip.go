package scan

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Whole reads a whole number that is written as one.
func (s *Scanner) Whole() int64 {
	s.space()
	start := s.at
	s.anyNumber()
	n, err := strconv.ParseInt(string(s.b[start:s.at]), 10, 64)
	if err != nil {
		s.Fail()
	}
	return n
}

// OptionalWhole reads null, or a whole number.
func (s *Scanner) OptionalWhole(v **int64) {
	if *v = nil; !s.Null() {
		*v = new(s.Whole())
	}
}

// OptionalFloat reads null, or a number.
func (s *Scanner) OptionalFloat(v **float64) {
	if *v = nil; s.Null() {
		return
	}
	f, err := strconv.ParseFloat(string(s.Skip()), 64)
	if err != nil {
		s.Fail()
	}
	*v = &f
}

// maxNesting bounds the recursion of skip.
const maxNesting = 100

// Skip reads a value of any kind and returns that part of the input.
func (s *Scanner) Skip() []byte {
	s.space()
	start := s.at
	s.skip(0)
	return s.b[start:s.at]
}

func (s *Scanner) skip(nesting int) {
	switch c := s.peek(); {
	case nesting > maxNesting:
		s.Fail()
	case c == '{':
		var o Object
		for _, ok := s.Field(&o); ok; _, ok = s.Field(&o) {
			s.skip(nesting + 1)
		}
	case c == '[':
		for begun := false; s.more(&begun, '[', ']'); {
			s.skip(nesting + 1)
		}
	case c == '"':
		if text, plain := s.quoted(); !plain && (!json.Valid(s.b[s.at-len(text)-2:s.at]) || !utf8.Valid(text)) {
			s.Fail()
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
}

// anyNumber skips a number of any form.
func (s *Scanner) anyNumber() {
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
func (s *Scanner) peekIs(set string) bool {
	return s.at < len(s.b) && strings.IndexByte(set, s.b[s.at]) >= 0
}

// digits skips at least one digit.
func (s *Scanner) digits() {
	start := s.at
	for s.peekIs("0123456789") {
		s.at++
	}
	if s.at == start {
		s.Fail()
	}
}
