package agent

import "time"

// DelayAfter is for tests: the bound lies beyond the last delivery.
func DelayAfter(deliveries int) time.Duration { return delayAfter(deliveries) }
