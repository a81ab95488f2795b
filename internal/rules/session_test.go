package rules

import (
	"testing"

	"lessor"
)

func TestSessionsOfATokenAreBounded(t *testing.T) {
	var all []Session
	key := func(n int) [32]byte { return [32]byte{byte(n)} }
	for n := range MaxSessions {
		all = BeginSession(all, Session{key(n), lessor.Instant(100 + n)}, 1)
	}
	if len(all) != MaxSessions || all[0].Key != key(0) {
		t.Fatalf("%d sessions, the first %v; want all %d", len(all), all[0].Key, MaxSessions)
	}
	if more := BeginSession(all, Session{key(99), 200}, 1); len(more) != MaxSessions || more[0].Key != key(1) ||
		more[MaxSessions-1].Key != key(99) {
		t.Errorf("one too many: %d sessions, from %v to %v; want the oldest gone", len(more), more[0].Key,
			more[len(more)-1].Key)
	}
	for now, want := range map[lessor.Instant]int{99: MaxSessions, 100: MaxSessions, 101: MaxSessions - 1, 1000: 1} {
		if got := BeginSession(all, Session{key(99), 2000}, now); len(got) != want {
			t.Errorf("at %d: %d sessions, want %d", now, len(got), want)
		}
	}
	if left := EndSession(all, key(3)); len(left) != MaxSessions-1 || len(EndSession(left, key(3))) != MaxSessions-1 {
		t.Errorf("after an end %d are left", len(left))
	}
}
