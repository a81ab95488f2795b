package rules

import "testing"

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

func TestKeysAreKeptWhenNumbersJump(t *testing.T) {
	const floor = 1_000_000
	for _, c := range []struct{ seen, floor, want int64 }{
		{1000, 0, 0}, {1001, 0, 1}, {1001, floor, 1}, {floor, floor, floor - 1000}, // given before the loss
		{floor + 1, floor, 0}, {floor + 999, floor, 0}, {floor + 1000, floor, floor}, {floor + 1001, floor, floor + 1},
	} {
		if n := Keyless(c.seen, Serving{Fence: c.floor}); n != c.want {
			t.Errorf("%d seen with the floor %d: keys are kept after %d, want %d", c.seen, c.floor, n, c.want)
		}
	}
}
