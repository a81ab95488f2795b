package postgres

import (
	"math"
	"strconv"
	"strings"

	"lessor"
	"lessor/internal/scheduler"
)

// filter is a condition that a list may have or not. Its parameter is sent either way, and is null when there is no such condition.
type filter struct{ text, param string }

// variants returns a list for every choice among the filters, so that each is planned for what it asks. The parameters of the
// filters come first.
func variants(head, tail string, filters ...filter) []*statement {
	all := make([]*statement, 1<<len(filters))
	for n := range all {
		var text strings.Builder
		text.WriteString(head)
		for i, f := range filters {
			param := "$" + strconv.Itoa(i+1) + "::" + f.param
			if n&(1<<i) != 0 {
				text.WriteString(" and " + f.text + param)
			} else {
				text.WriteString(" and " + param + " is null")
			}
		}
		text.WriteString(tail)
		all[n] = sql(text.String())
	}
	return all
}

// page reads one of the variants: that with the filters that are not nil.
func (v *view) page(verb string, stmts []*statement, filters [][]byte, each func(*row), rest ...[]byte) error {
	n := 0
	for i, f := range filters {
		if f != nil {
			n |= 1 << i
		}
	}
	return v.query(verb, stmts[n], func(r *row) error {
		each(r)
		return nil
	}, append(filters, rest...)...)
}

// textOrNil is nil for "".
func textOrNil(v string) []byte {
	if v == "" {
		return nil
	}
	return textOf(v)
}

// before returns the bound of a list that begins after an id, newest first; nil begins with the newest.
// afterAll is larger than every id that is given.
var afterAll = lessor.UUID{
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
}

func before[T interface{ ~struct{ lessor.UUID } }](after *T) []byte {
	if after == nil {
		return uuidOf(afterAll)
	}
	return uuidOf(struct{ lessor.UUID }(*after).UUID)
}

// placeOf returns the bound of a list that begins after a place, newest first; nil begins with the newest.
func placeOf(after *scheduler.Named) (at, name []byte) {
	if after == nil {
		after = &scheduler.Named{At: math.MaxInt64}
	}
	return instantOf(after.At), textOf(after.Name)
}

// idOrNil is nil for no id.
func idOrNil[T interface{ ~struct{ lessor.UUID } }](id *T) []byte {
	if id == nil {
		return nil
	}
	return uuidOf(struct{ lessor.UUID }(*id).UUID)
}

// limitOf is the limit of a list; a negative one is an error to the server.
func limitOf(n int) []byte { return int8Of(int64(max(0, n))) }

// textsOf returns an array of texts.
func textsOf(v *view, texts []string) []byte {
	if len(texts) == 0 {
		return emptyArray(oidText)
	}
	r := v.scratch.reset()
	for _, text := range texts {
		r.row()
		r.text(text)
	}
	return r.params()[0]
}

func boolOf(v bool) []byte {
	if v {
		return []byte{1}
	}
	return []byte{0}
}
