package rules

import (
	"testing"

	"lessor"
)

func TestMessageNumbersGoOnAboveTheFloor(t *testing.T) {
	for _, c := range []struct{ sent, floor, want int64 }{
		{0, 0, 1}, {4, 0, 5}, {0, 1000, 1001}, {4, 1000, 1001}, {1000, 1000, 1001}, {1001, 1000, 1002},
	} {
		st := &Standing{Spec: &Spec{}, Report: &Report{Sent: c.sent}}
		m, err := Send(st, nil, Message{}, Inbox{Limit: 1}, 1, Serving{Fence: c.floor})
		if err != nil || m.Seq != c.want {
			t.Errorf("after %d above the floor %d comes %d, %v; want %d", c.sent, c.floor, m.Seq, err, c.want)
		}
	}
}

// TestMessageNumbersGoOnAfterAnOutage: the database may have been restored while no node served.
func TestMessageNumbersGoOnAfterAnOutage(t *testing.T) {
	const since = 5000
	for _, c := range []struct {
		created     lessor.Instant
		sent, fence int64
		restorable  bool
		want        int64
	}{
		{since - 1, 4, 0, false, 5},
		{since - 1, 4, 0, true, since + 1},
		{since - 1, 0, 0, true, since + 1},
		{since - 1, since + 1, 0, true, since + 2},
		{since - 1, 4, 2 * since, true, 2*since + 1},
		{since, 4, 0, true, 5}, // the job is younger than the backup could be
		{since, 0, 0, true, 1},
	} {
		st := &Standing{Spec: &Spec{CreatedAt: c.created}, Report: &Report{Sent: c.sent}}
		in := Inbox{Limit: 1, Restorable: c.restorable}
		m, err := Send(st, nil, Message{}, in, 2*since, Serving{Since: since, Fence: c.fence})
		if err != nil || m.Seq != c.want {
			t.Errorf("%+v: the number is %d, %v", c, m.Seq, err)
		}
	}
}

func TestKeysAreKeptWhenNumbersJump(t *testing.T) {
	const floor, later = 1 << 41, 1<<41 + 100_000
	for _, c := range []struct {
		seen, fence int64
		since       lessor.Instant
		want        int64
	}{
		{1000, 0, floor, 0},
		{1001, 0, floor, 1},
		{1001, floor, 0, 1},
		{floor + 1, floor, 0, 0},
		{floor + 999, floor, 0, 0},
		{floor + 1000, floor, 0, floor},
		{floor + 1001, floor, 0, floor + 1},
		{floor + 1, 0, floor, 0},
		{floor + 999, 0, floor, 0},
		{floor + 1000, 0, floor, floor},
		{floor + 2000, 0, later, 0}, // given before another outage
		{later + 1000, floor, later, later},
	} {
		if n := Keyless(c.seen, Serving{Fence: c.fence, Since: c.since}); n != c.want {
			t.Errorf("%+v: keys are kept after %d", c, n)
		}
	}
}
