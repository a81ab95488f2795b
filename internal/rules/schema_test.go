package rules

import "testing"

func TestProgramUsesTheSchemasThatItKnowsOrThatAllowIt(t *testing.T) {
	for _, c := range []struct {
		is, knows int64
		stated    string
		ok        bool
	}{
		{0, 9, "", true},
		{8, 9, "", true},
		{9, 9, "", true},
		{9, 9, "9 8", true},
		{10, 9, "", false},
		{10, 9, "10 9", true},
		{10, 9, "10 8", true},
		{10, 9, "10 10", false},
		{11, 9, "10 9", false}, // the last migration states nothing
		{10, 9, "ten nine", false},
	} {
		if err := CheckSchema(c.is, c.knows, c.stated); c.ok != (err == nil) {
			t.Errorf("schema %d, which states %q, and a program that knows %d: %v", c.is, c.stated, c.knows, err)
		}
	}
}
