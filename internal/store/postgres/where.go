package postgres

import (
	"math"
	"strconv"
	"strings"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store/postgres/wire"
	"lessor/internal/store/row"
)

// filter is a condition that a list may have or not. Its parameter is sent either way, and is null when there is no such condition.
type filter struct{ text, param string }

// variants returns a list for every choice among the filters, so that each is planned for what it asks. The parameters of the
// filters come first.
func variants(head, tail string, filters ...filter) []*wire.Statement {
	all := make([]*wire.Statement, 1<<len(filters))
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
		all[n] = wire.SQL(text.String())
	}
	return all
}

// page reads one of the variants: that with the filters that are not nil.
func page[T any](
	v *view, verb string, stmts []*wire.Statement, filters [][]byte, declare func(*row.Codec, *T), rest ...[]byte,
) (list []T, err error) {
	n := 0
	for i, f := range filters {
		if f != nil {
			n |= 1 << i
		}
	}
	err = v.query(verb, stmts[n], collect(&list, declare), append(filters, rest...)...)
	return list, err
}

// before returns the bound of a list that begins after an id, newest first; nil begins with the newest.
// afterAll is larger than every id that is given.
var afterAll = lessor.UUID{
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
}

func before[T interface{ ~struct{ lessor.UUID } }](after *T) []byte {
	if after == nil {
		return wire.ID(afterAll)
	}
	return wire.ID(struct{ lessor.UUID }(*after).UUID)
}

// placeOf returns the bound of a list that begins after a place, newest first; nil begins with the newest.
func placeOf(after *scheduler.Named) (at, name []byte) {
	if after == nil {
		after = &scheduler.Named{At: math.MaxInt64}
	}
	return wire.Instant(after.At), wire.Text(after.Name)
}
