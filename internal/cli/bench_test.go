package cli

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestBarShowsHowFarItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		tell := bar(&out, "jobs", 100)
		tell(0)
		tell(1) // too soon to be seen
		time.Sleep(meterEvery)
		tell(50)
		if got := out.String(); strings.Contains(got, " 1 of 100") || !strings.Contains(got, strings.Repeat("█", 15)+strings.Repeat("░", 15)+" 50 of 100 jobs") {
			t.Errorf("shown: %q", got)
		}
		tell(100)
		if got := out.String(); !strings.HasSuffix(got, "\r\x1b[K") {
			t.Errorf("at the end the bar is left: %q", got)
		}
	})
}

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
