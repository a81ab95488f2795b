package sqlite

import (
	"math"

	"lessor/internal/scheduler"
	"lessor/internal/store/row"
)

// where collects the conditions of a list, and their parameters in the same order.
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

// page is the text of a query for one page of rows that meet the conditions.
func (w *where) page(from, order string) string {
	return from + w.text + " order by " + order + " limit +?"
}

// bind binds the parameters of the conditions and of the limit.
func (w *where) bind(limit int) func(*args) {
	return func(a *args) {
		for _, bind := range w.binds {
			bind(a)
		}
		a.limit(limit)
	}
}

// page reads up to limit rows that meet the conditions.
func page[T any](v *view, from string, w *where, order string, limit int, declare func(*row.Codec, *T)) ([]T, error) {
	return collect(v.conn, w.page(from, order), w.bind(limit), declare)
}

// bindPlace binds the bound of a list that begins after a place, newest first; nil begins with the newest.
func bindPlace(a *args, after *scheduler.Named) {
	if after == nil {
		after = &scheduler.Named{At: math.MaxInt64}
	}
	a.instant(after.At)
	a.Text(after.Name)
}
