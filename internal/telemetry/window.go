package telemetry

import (
	"math"
	"sync"
	"time"
)

// The shape of the window. Latency buckets grow by a tenth, so p95 is exact to a few per cent from 0.1 ms to more than
// a minute. The window takes about 35 KB, however many requests arrive.
const (
	windowSeconds = 60
	firstMS       = 0.1
	growth        = 1.1
	buckets       = 144
)

// window is the last minute of the API, with one slot per second.
type window struct {
	mu       sync.Mutex
	inFlight int
	slots    [windowSeconds]slot
}

type slot struct {
	second   int64 // Unix time; a slot of an older minute does not count
	latency  [buckets]uint32
	timed    int // requests with a latency
	requests int // timed requests and long polls
	errors   int // requests answered 5xx
}

func (w *window) enter() {
	w.mu.Lock()
	w.inFlight++
	w.mu.Unlock()
}

func (w *window) leave() {
	w.mu.Lock()
	w.inFlight--
	w.mu.Unlock()
}

// add counts an answered request.
func (w *window) add(now time.Time, took time.Duration, status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.at(now)
	s.latency[bucketOf(took)]++
	s.timed++
	s.answer(status)
}

// addHeld counts an answered long poll. Its latency does not count, because the caller chose it.
func (w *window) addHeld(now time.Time, status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at(now).answer(status)
}

func (s *slot) answer(status int) {
	s.requests++
	if status >= 500 {
		s.errors++
	}
}

func (w *window) at(now time.Time) *slot {
	second := now.Unix()
	s := &w.slots[second%windowSeconds]
	if s.second != second {
		*s = slot{second: second}
	}
	return s
}

func bucketOf(took time.Duration) int {
	ms := float64(took) / float64(time.Millisecond)
	if ms <= firstMS {
		return 0
	}
	return min(int(math.Ceil(math.Log(ms/firstMS)/math.Log(growth))), buckets-1)
}

// APIWindow returns figures of the last 60 s of the API: the 95th percentile of latency in milliseconds, the share of
// 5xx answers, the requests in flight now, and the number of requests. Long polls, streams, health and metrics are
// neither in p95 nor in flight; of these only long polls count as requests. Without requests all figures are 0.
//
//nolint:revive // the four inputs of the busy rating, in its order
func (t *Telemetry) APIWindow(now time.Time) (p95ms, errorShare float64, inFlight, requests int) {
	w := &t.window
	w.mu.Lock()
	defer w.mu.Unlock()
	var latency [buckets]uint32
	timed, errors := 0, 0
	oldest, newest := now.Unix()-windowSeconds, now.Unix()
	for i := range w.slots {
		s := &w.slots[i]
		if s.second <= oldest || s.second > newest {
			continue
		}
		timed, requests, errors = timed+s.timed, requests+s.requests, errors+s.errors
		for b, n := range &s.latency {
			latency[b] += n
		}
	}
	if requests > 0 {
		errorShare = float64(errors) / float64(requests)
	}
	return percentile(latency[:], timed, 0.95), errorShare, w.inFlight, requests
}

// percentile returns the value that the given share of n latencies do not exceed. It assumes that the latencies of a
// bucket are spread evenly.
func percentile(latency []uint32, n int, share float64) float64 {
	if n == 0 {
		return 0
	}
	rank, below := share*float64(n), 0.0
	for b, count := range latency {
		if count > 0 && below+float64(count) >= rank {
			low, high := 0.0, firstMS*math.Pow(growth, float64(b))
			if b > 0 {
				low = high / growth
			}
			return low + (high-low)*(rank-below)/float64(count)
		}
		below += float64(count)
	}
	return firstMS * math.Pow(growth, buckets-1)
}
