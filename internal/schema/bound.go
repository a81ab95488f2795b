package schema

import (
	"encoding/json"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxPattern bounds the instructions of a compiled pattern. RE2 takes up to that many steps per character, and a few
// bytes such as ((a{99}){99}){99} compile to a million.
const maxPattern = 2000

func compilePattern(text string) (jsonschema.Regexp, error) {
	if _, err := patternSize(text); err != nil {
		return nil, err
	}
	return regexp.Compile(text)
}

// patternSize returns the number of instructions of a compiled pattern.
func patternSize(text string) (int, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, err
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, err
	}
	if len(prog.Inst) > maxPattern {
		return 0, fmt.Errorf("it becomes %d instructions, and %d are allowed", len(prog.Inst), maxPattern)
	}
	return len(prog.Inst), nil
}

// maxNumber bounds the characters of a number, and its exponent: more than the largest float64 needs. The library
// makes a fraction of each number, and 1e1000000 would be a fraction of a million digits.
const maxNumber = 400

// hugeNumber returns a number in value that is too large for the library.
func hugeNumber(value any) (n json.Number, ok bool) {
	switch v := value.(type) {
	case json.Number:
		return v, !moderate(v.String())
	case []any:
		for _, item := range v {
			if n, ok = hugeNumber(item); ok {
				return n, true
			}
		}
	case map[string]any:
		for _, item := range v {
			if n, ok = hugeNumber(item); ok {
				return n, true
			}
		}
	}
	return "", false
}

func moderate(number string) bool {
	if len(number) > maxNumber {
		return false
	}
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return true
	}
	exponent, err := strconv.Atoi(number[i+1:])
	return err == nil && exponent >= -maxNumber && exponent <= maxNumber
}
