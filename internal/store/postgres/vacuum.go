package postgres

import (
	"context"
	"time"

	"lessor/internal/store/postgres/wire"
)

// vacuumHot vacuums the tables whose rows live for seconds. Autovacuum runs once a minute by default; by then a busy
// node has left two million dead leases and a table of a gigabyte. A table that is being vacuumed already is skipped.
const vacuumHot = "vacuum (skip_locked, truncate off) lease, queue, cohort, cohort_left, change"

// vacuumLimits leave a longer vacuum to the server.
var vacuumLimits = wire.Limits{Idle: time.Second, Lock: time.Second, Statement: 2 * time.Second}

// spend counts leases that have ended, and starts a vacuum of the hot tables when there were many. The writer that has
// the turn calls it.
func (s *Store) spend(leases int) {
	if s.spent += leases; s.spent < s.cfg.VacuumAfter {
		return
	}
	select {
	case s.vacuumTurn <- struct{}{}:
		s.spent = 0
		go func() {
			s.vacuum()
			<-s.vacuumTurn
		}()
	default: // it is under way
	}
}

// vacuum may fail; a later one, or the server's, does the same.
func (s *Store) vacuum() {
	ctx, cancel := context.WithTimeout(context.Background(), wire.ConnectTimeout)
	defer cancel()
	c, err := s.dialer.Dial(ctx, vacuumLimits)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	_, _ = c.Exec(ctx, vacuumHot)
}
