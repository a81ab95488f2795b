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

// filter is an optional condition of a list. Its parameter is always sent, and is null without the condition.
type filter struct{ text, param string }

// variants returns a statement for every choice among the filters, so that each has a plan of its own. The parameters
// of the filters come first.
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

// page runs the variant with the filters that are not nil.
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

// afterAll is larger than every id.
var afterAll = lessor.UUID{
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
}

// before returns the bound of a list that begins after an id, newest first; nil begins with the newest.
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
