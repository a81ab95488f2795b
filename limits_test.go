package lessor_test

import (
	"testing"
	"time"

	"lessor"
)

func TestRetryPauseDoublesUpToItsBound(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		0: lessor.RetryFirst, 1: lessor.RetryFirst, 2: 2 * lessor.RetryFirst,
		4: 8 * lessor.RetryFirst, 5: lessor.RetryMax, 1000: lessor.RetryMax,
	} {
		if got := lessor.RetryPause(failures); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
	}
}
