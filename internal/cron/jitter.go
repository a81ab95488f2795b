package cron

import (
	"strconv"
	"time"

	"lessor"
)

// Jitter returns how long after a tick its job is due: 0 to most, in whole milliseconds, the same on every node and at
// every asking, since it follows from the definition and the tick alone.
func Jitter(definition string, tick lessor.Instant, most time.Duration) time.Duration {
	if most < time.Millisecond {
		return 0
	}
	ms := hash(strconv.FormatInt(int64(tick), 10)+"\x00"+definition, uint64(most.Milliseconds()+1))
	return time.Duration(ms) * time.Millisecond
}
