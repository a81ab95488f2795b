package cli

import (
	"testing"
	"time"
)

func TestSummaryOfLatencies(t *testing.T) {
	var took []time.Duration
	for i := range 100 {
		took = append(took, time.Duration(100-i)*time.Millisecond)
	}
	want := benchCall{Call: "submit", Count: 100, P50: 51, P95: 96, P99: 100, Max: 100}
	if got := summarize("submit", took); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := summarize("submit", nil); got != (benchCall{Call: "submit"}) {
		t.Errorf("without calls: %+v", got)
	}
}
