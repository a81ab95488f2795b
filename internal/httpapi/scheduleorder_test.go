package httpapi

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestScheduleListsAreNewestFirst reads each list a page at a time while others are made: what was there is shown once
// and in order.
func TestScheduleListsAreNewestFirst(t *testing.T) {
	s := start(t)
	made := []string{"job-m", "job-z", "job-a", "job-y"} // in the order of no id
	tenants := []string{tenantA, tenantB, tenantA, tenantB}
	add := func(i int) {
		id := made[i]
		s.schedules("PUT", "/jobs/"+id, definition(id, tenants[i]), 201)
		s.schedules("PUT", "/handlers/"+id, `{"schema":{}}`, 201)
		fail(s, id)
		s.api("POST", "/jobs", `{"type":"locked","lock_key":"`+id+`","tenant_id":"`+tenants[i]+`"}`, 201)
		s.api("POST", "/leases/request", `{"worker_id":"w","types":["locked"]}`, 200)
		time.Sleep(2 * time.Millisecond) // the next is of a later instant
	}
	for i := range 3 {
		add(i)
	}
	lists := []struct{ name, key string }{
		{"jobs", "jobId"},
		{"handlers", "handlerId"},
		{"circuits", "jobId"},
		{"locks", "lockKey"},
	}
	shown, cursors := map[string][]string{}, map[string]string{}
	read := func() {
		for _, l := range lists {
			page := s.schedules("GET", "/"+l.name+"?limit=1"+cursors[l.name], "", 200)
			for _, entry := range page[l.name].([]any) {
				shown[l.name] = append(shown[l.name], entry.(map[string]any)[l.key].(string))
			}
			if cursors[l.name] = ""; page["nextCursor"] != nil {
				cursors[l.name] = "&cursor=" + page["nextCursor"].(string)
			}
		}
	}
	read()
	add(3)
	read()
	read()
	want := slices.Clone(made[:3])
	slices.Reverse(want)
	for _, l := range lists {
		if d := cmp.Diff(want, shown[l.name]); d != "" || cursors[l.name] != "" {
			t.Errorf("%s, then cursor %q (-want +got):\n%s", l.name, cursors[l.name], d)
		}
	}
}
