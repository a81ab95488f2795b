package postgres

import (
	"context"
	"time"

	"lessor/internal/store/postgres/wire"
)

// vacuumHot vacuums the tables whose rows live for seconds. Autovacuum comes once a minute, unless the server is told otherwise; by then a busy node has left
// two million dead leases behind, and a table of a gigabyte. A table that somebody vacuums already is passed over.
const vacuumHot = "vacuum (skip_locked, truncate off) lease, queue, cohort, cohort_left, change"

// vacuumLimits: what takes longer is left to autovacuum.
var vacuumLimits = wire.Limits{Idle: time.Second, Lock: time.Second, Statement: 2 * time.Second}

// spend counts leases that have ended, and has the hot tables vacuumed beside everything else when there were many. It belongs to who has the turn.
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

// vacuum may fail: then it is done another time, by us or by the server.
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
