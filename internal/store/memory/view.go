package memory

import (
	"context"
	"fmt"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// view reads: one snapshot, or what a transaction sees.
type view struct {
	store   *Store
	db      *Database
	tx      *tx // nil = a snapshot
	state   tables
	streams table[stream]
	version int64 // of the database, for a snapshot
	now     lessor.Instant
	row     rules.Serving // as it was read
	serving rules.Serving // what it means here
	saved   *rules.Serving
	err     error
}

var _ scheduler.View = (*view)(nil)

// View implements scheduler.Store.
func (s *Store) View(ctx context.Context, fn func(scheduler.View) error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("begin a view: %w", context.Cause(ctx))
	}
	s.reach(s.node, "view")
	v, err := s.beginView()
	if err == nil {
		err = fn(v)
		s.endView(v)
	}
	return err
}

// View reads the tables from outside: no node is involved, and others do not run meanwhile.
func (d *Database) View(fn func(scheduler.View) error) error {
	v, err := d.outside().beginView()
	if err != nil {
		return err
	}
	return fn(v)
}

// outside is a store of no node.
func (d *Database) outside() *Store {
	return &Store{common: d.common, db: d, origin: origin{timeline: d.timeline}}
}

func (s *Store) beginView() (*view, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, errClosed
	case s.differs():
		return nil, errWentBack
	}
	v := s.spare
	if s.spare = nil; v == nil {
		v = &view{}
	}
	s.snapshot(v)
	return v, nil
}

// endView keeps a view for the next: a simulated hour has thousands of them.
func (s *Store) endView(v *view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = v
}

// snapshot makes v a snapshot of what is committed now.
func (s *Store) snapshot(v *view) {
	d := s.db
	*v = view{
		store: s, db: d, state: d.state, streams: d.streams, version: d.version, now: d.Clock(), row: d.serving,
		serving: d.serving,
	}
}

// read begins a statement that only reads, and returns what it sees; nothing after a fault, which is in v.err.
func (v *view) read(verb string) *tables {
	switch {
	case v.tx != nil:
		_ = v.tx.do(verb, func() error { return nil }) // kept in v.err
	case v.err == nil:
		v.db.reach(v.store.node, verb)
	}
	if v.err != nil {
		return &tables{}
	}
	return &v.state
}

// Now implements scheduler.View.
func (v *view) Now() lessor.Instant { return v.now }

// Serving implements scheduler.View.
func (v *view) Serving() rules.Serving { return v.serving }

// page returns up to limit rows that match.
func page[V any](rows func(func(key, V) bool), limit int, matches func(V) bool) (list []V) {
	for _, v := range rows {
		if len(list) >= limit {
			break
		}
		if matches(v) {
			list = append(list, v)
		}
	}
	return list
}

// is reports whether an optional filter lets a value pass.
func is[T comparable](filter *T, v T) bool { return filter == nil || *filter == v }
