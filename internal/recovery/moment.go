package recovery

import (
	"time"

	"lessor"
)

// moment is one reading of our own clock, by which silence is measured, and of the machine's wall clock, which may be set at any time. The
// wall clock is only compared with the times in files, and shown.
type moment struct {
	time.Time
	wall lessor.Instant
}

func (m *Monitor) now() moment { return momentOf(m.cfg) }

func momentOf(cfg Config) moment {
	now := time.Now()
	if cfg.Wall != nil {
		return moment{now, cfg.Wall()}
	}
	return moment{now, lessor.At(now)}
}
