package host

import (
	"testing"

	"github.com/shirou/gopsutil/v4/cpu"
)

func TestFirstSampleIsKnownAtOnce(t *testing.T) {
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c, m, err := s.Sample()
		if err != nil || c < 0 || c > 100 || m <= 0 || m > 100 {
			t.Fatalf("cpu %v, memory %v, %v; want per cents", c, m, err)
		}
	}
}

func TestUsedIsTheShareThatWasNotIdle(t *testing.T) {
	start := cpu.TimesStat{User: 100, System: 50, Idle: 1000, Iowait: 10}
	for _, tt := range []struct {
		name string
		to   cpu.TimesStat
		want float64
		ok   bool
	}{
		{"all idle", cpu.TimesStat{User: 100, System: 50, Idle: 1010, Iowait: 10}, 0, true},
		{"all busy", cpu.TimesStat{User: 105, System: 55, Idle: 1000, Iowait: 10}, 100, true},
		{"half", cpu.TimesStat{User: 104, System: 51, Idle: 1004, Iowait: 11}, 50, true},
		{"steal is busy", cpu.TimesStat{User: 100, System: 50, Idle: 1005, Iowait: 10, Steal: 5}, 50, true},
		{"too short", cpu.TimesStat{User: 100.1, System: 50, Idle: 1000, Iowait: 10}, 0, false},
		{"went back", cpu.TimesStat{User: 10, System: 5, Idle: 100, Iowait: 1}, 0, false},
	} {
		if got, ok := used(start, tt.to); ok != tt.ok || got < tt.want-0.01 || got > tt.want+0.01 {
			t.Errorf("%s: %v %v, want %v %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}
