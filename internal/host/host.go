// Package host measures the machine for the busy rating.
package host

import (
	"fmt"
	"sync"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/mem"
)

// Sampler measures CPU use between two samples. It never waits.
type Sampler struct {
	mu   sync.Mutex
	last cpu.TimesStat
	cpu  float64 // percentage in the last interval that was long enough to measure
}

// New takes the first measurement. Until there is a second one, the CPU percentage is the average since the machine
// started, because the server needs a value before it is ready.
func New() (*Sampler, error) {
	now, err := times()
	if err != nil {
		return nil, err
	}
	s := &Sampler{last: now}
	s.cpu, _ = used(cpu.TimesStat{}, now)
	return s, nil
}

// Sample returns the use of CPU and memory in per cent, 0 to 100.
func (s *Sampler) Sample() (cpuPercent, memPercent float64, err error) {
	now, err := times()
	if err != nil {
		return 0, 0, err
	}
	m, err := mem.VirtualMemory()
	if err != nil {
		return 0, 0, fmt.Errorf("measure memory: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if percent, ok := used(s.last, now); ok {
		s.cpu, s.last = percent, now
	}
	return s.cpu, m.UsedPercent, nil
}

func times() (cpu.TimesStat, error) {
	all, err := cpu.Times(false)
	if err != nil {
		return cpu.TimesStat{}, fmt.Errorf("measure cpu: %w", err)
	}
	if len(all) != 1 {
		return cpu.TimesStat{}, fmt.Errorf("measure cpu: %d totals instead of one", len(all))
	}
	return all[0], nil
}

// minSpan is the least CPU time in seconds, over all cores, from which a share is computed. The kernel counts in steps
// of 10 ms, so less would be noise.
const minSpan = 0.2

// used returns the share of CPU time between two measurements that was not idle, in per cent.
func used(from, to cpu.TimesStat) (percent float64, ok bool) {
	idle := to.Idle + to.Iowait - from.Idle - from.Iowait
	span := busy(to) - busy(from) + idle
	if span < minSpan {
		return 0, false
	}
	return min(max(100*(1-idle/span), 0), 100), true
}

// busy leaves out guest time, which the kernel counts as user time already.
func busy(t cpu.TimesStat) float64 {
	return t.User + t.System + t.Nice + t.Irq + t.Softirq + t.Steal
}
