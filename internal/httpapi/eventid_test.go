package httpapi

import (
	"context"
	"strings"
	"testing"

	"lessor"
	"lessor/internal/scheduler"
)

func TestEventIDsAreTheReadersOwn(t *testing.T) {
	tenant := lessor.TenantID{UUID: lessor.UUID{1}}
	life := newEventIDs()
	ann := life.of(scheduler.Caller{Actor: "ann", Tenant: &tenant})
	for _, place := range []uint64{1, 2, 1 << 40} {
		if got := ann.open(ann.seal(place)); got != place {
			t.Errorf("place %d comes back as %d", place, got)
		}
	}
	id := ann.seal(7)
	for name, other := range map[string]readerIDs{
		"another name":   life.of(scheduler.Caller{Actor: "bob", Tenant: &tenant}),
		"another tenant": life.of(scheduler.Caller{Actor: "ann"}),
		"another life":   newEventIDs().of(scheduler.Caller{Actor: "ann", Tenant: &tenant}),
	} {
		if got := other.open(id); got != scheduler.AfterUnknown || other.seal(7) == id {
			t.Errorf("%s: opens the id as place %d, has the same id: %v", name, got, other.seal(7) == id)
		}
	}
	for _, wrong := range []string{"7", "x", id[:31], id + "00", strings.Repeat("0", 32)} {
		if got := ann.open(wrong); got != scheduler.AfterUnknown {
			t.Errorf("%q opens as place %d", wrong, got)
		}
	}
	if got := ann.open(""); got != 0 {
		t.Errorf("no id is place %d", got)
	}
}

// A reader that comes back with an id which this server did not give learns that at once, and then gets all that is
// remembered.
func TestStreamFromAnEarlierStartBeginsWithAGap(t *testing.T) {
	serve(t, func(s *served) {
		t := s.t
		ctx, leave := context.WithCancel(t.Context())
		next := s.follow(ctx)
		next()
		stranger := s.follow(t.Context(), header("Last-Event-ID", "1"))
		stranger()
		if got := stranger(); !strings.HasPrefix(got, "event: gap\n") {
			t.Errorf("nothing is remembered yet: %q, want a gap at once", got)
		}
		var last, job string
		const more = 1100 // than a slow reader may be behind
		for range more {
			job = s.api("POST", "/jobs", `{"type":"x"}`, 201)["job_id"].(string)
			id, _ := record(t, next())
			if id == last {
				t.Fatalf("two records have the id %s", id)
			}
			last = id
		}
		leave()
		for _, id := range []string{"5", newEventIDs().of(scheduler.Caller{Actor: "local"}).seal(5)} {
			again := s.follow(t.Context(), header("Last-Event-ID", id))
			again()
			if got := again(); !strings.HasPrefix(got, "event: gap\n") {
				t.Fatalf("after the id %s: %q, want a gap", id, got)
			}
			for i := range more {
				if _, e := record(t, again()); i == more-1 && e.JobID.String() != job {
					t.Errorf("record %d is of %s, want the last, %s", i, e.JobID, job)
				}
			}
		}
	})
}

// What a tenant's reader sees does not depend on how many records others have.
func TestEventIDsRevealNothingOfOthers(t *testing.T) {
	serve(t, func(s *served) {
		t := s.t
		mine := with(s.issue("viewer", tenantA))
		next := s.follow(t.Context(), mine)
		next()
		s.api("POST", "/jobs", `{"type":"x","tenant_id":"`+tenantA+`"}`, 201)
		first, _ := record(t, next())
		for range 3 {
			s.api("POST", "/jobs", `{"type":"x","tenant_id":"`+tenantB+`"}`, 201)
		}
		job := s.api("POST", "/jobs", `{"type":"x","tenant_id":"`+tenantA+`"}`, 201)["job_id"]
		if second, _ := record(t, next()); len(first) != 32 || len(second) != 32 || first[:4] == second[:4] {
			t.Errorf("the ids %s and %s are no sealed places", first, second)
		}
		again := s.follow(t.Context(), mine, header("Last-Event-ID", first))
		again()
		if _, e := record(t, again()); e.JobID.String() != job {
			t.Errorf("coming back begins with %s, want %s", e.JobID, job)
		}
	})
}
