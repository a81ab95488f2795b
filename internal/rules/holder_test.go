package rules

import (
	"errors"
	"testing"
	"time"

	"lessor"
)

// by is a worker that calls without a token.
func by(worker string) Hand { return Hand{Holder: Holder{Worker: worker}} }

// TestTouchAsksForTokenAndSpace: the worker's name is not enough, unless a release before noted no more.
func TestTouchAsksForTokenAndSpace(t *testing.T) {
	token := func(n byte) lessor.TokenID { return lessor.TokenID{UUID: lessor.UUID{15: n}} }
	bound := func(h *Held) { h.Taker, h.Token, h.Bound = "ci", token(1), true }
	unbound := func(h *Held) { h.Taker, h.Token = "ci", token(1) }
	tokenless := func(h *Held) { h.Taker = "local" }
	own := tenantID(4)
	for _, c := range []struct {
		name  string
		lease func(*Held)
		by    Hand
		ok    bool
	}{
		{"the token that took it", bound, Hand{Holder{own, "w1"}, token(1), true}, true},
		{"an operator's token that took it", bound, Hand{Holder{own, "w1"}, token(1), false}, true},
		{
			"another worker's token of the tenant that knows the id", bound,
			Hand{Holder{own, "w1"}, token(2), true},
			true,
		},
		{"another worker's token under another name", bound, Hand{Holder{own, "w2"}, token(2), true}, false},
		{"another operator's token", bound, Hand{Holder{own, "w1"}, token(2), false}, false},
		{"a worker's token of another tenant", bound, Hand{Holder{tenantID(5), "w1"}, token(2), true}, false},
		{"a worker's token of no tenant", bound, Hand{Holder{Worker: "w1"}, token(2), true}, false},
		{"without a token", bound, by("w1"), false},
		{"unbound: the token that took it", unbound, Hand{Holder{Worker: "w1"}, token(1), true}, true},
		{"unbound: a worker's token of the job's tenant", unbound, Hand{Holder{own, "w1"}, token(2), true}, false},
		{"unbound: without a token", unbound, by("w1"), false},
		{"tokenless", tokenless, by("w1"), true},
		{"tokenless: an operator's token", tokenless, Hand{Holder{Worker: "w1"}, token(2), false}, false},
		{"not noted: any token", func(*Held) {}, Hand{Holder{own, "w1"}, token(2), false}, true},
		{"not noted: another name", func(*Held) {}, by("w2"), false},
	} {
		h := lease(func(h *Held) { h.Tenant = own }, c.lease)
		err := Touch(h, c.by, after(time.Second), served(after(time.Second)))
		if c.ok && err != nil || !c.ok && !errors.Is(err, lessor.ErrWorkerMismatch) {
			t.Errorf("%s: %v, accepted wanted: %v", c.name, err, c.ok)
		}
	}
}

func TestActorIsTheTokenBesideTheWorker(t *testing.T) {
	same(t, "the actor", ActorOf("ci", ActorScheduler), "ci/scheduler")
	same(t, "the worker", WorkerOf("ci/a/b"), "a/b")
	same(t, "the worker of a record before tokens were named", WorkerOf("w1"), "w1")
	for _, name := range []string{"", "scheduler", "recovery", "local", "anonymous", "dashboard", "ci/w1", "/"} {
		if Nameable(name) {
			t.Errorf("a token may be called %q", name)
		}
	}
	for _, name := range []string{"ci", "Scheduler", "local2", "ci w1"} {
		if !Nameable(name) {
			t.Errorf("no token may be called %q", name)
		}
	}
	same(t, "the actor of a lease of which no token was noted", ActorOf("", "w1"), "w1")
}
