package sqlite

import (
	"math"

	"lessor/internal/scheduler"
)

// where collects the conditions of a list, and what they bind in the same order.
type where struct {
	text  string
	binds []func(*args)
}

// and adds a condition; bind is nil for one without parameters.
func (w *where) and(text string, bind func(*args)) {
	if w.text == "" {
		w.text = " where " + text
	} else {
		w.text += " and " + text
	}
	if bind != nil {
		w.binds = append(w.binds, bind)
	}
}

// page reads up to limit rows that meet the conditions.
func (v *view) page(from string, w *where, order string, limit int, visit func(*row)) error {
	return query(v.conn, from+w.text+" order by "+order+" limit +?",
		func(a *args) {
			for _, bind := range w.binds {
				bind(a)
			}
			a.int(int64(max(0, limit))) // a negative limit is none to SQLite
		},
		func(r *row) error {
			visit(r)
			return nil
		})
}

// bindPlace binds the bound of a list that begins after a place, newest first; nil begins with the newest.
func bindPlace(a *args, after *scheduler.Named) {
	if after == nil {
		after = &scheduler.Named{At: math.MaxInt64}
	}
	a.instant(after.At)
	a.text(after.Name)
}
