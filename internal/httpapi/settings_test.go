package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"lessor"
)

// Each field of the capacity has its own expiry, which is shown, and what a request leaves out stays.
func TestCapacityFieldsExpireOnTheirOwn(t *testing.T) {
	s := start(t)
	set := func(body string) lessor.Capacity {
		t.Helper()
		s.api("PUT", "/capacity", body, 200)
		var c lessor.Capacity
		answer := s.call("GET", scheduling+"/capacity", "", with(s.admin))
		if err := json.Unmarshal(answer.Body.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := set(`{"total_units":50,"expires_in_s":3600}`)
	if left := time.Until(first.TotalUnitsExpiresAt.Time()); left < 50*time.Minute || left > time.Hour {
		t.Errorf("the total of 50 ends in %v, want in an hour", left)
	}
	second := set(`{"busy":4}`)
	if second.TotalUnits != 50 || second.TotalUnitsExpiresAt != first.TotalUnitsExpiresAt || second.Busy != 4 ||
		second.BusyExpiresAt != 0 {
		t.Errorf("after a change of the rating alone: %+v, before it %+v", second, first)
	}
	audited := len(s.schedules("GET", "/audit", "", 200)["audit"].([]any))
	if third := set(`{}`); third.TotalUnitsExpiresAt != second.TotalUnitsExpiresAt || third.Busy != 4 {
		t.Errorf("after an empty change: %+v, before it %+v", third, second)
	}
	if now := len(s.schedules("GET", "/audit", "", 200)["audit"].([]any)); now != audited {
		t.Errorf("an empty change has an entry in the audit")
	}
	s.api("PUT", "/capacity", `{"expires_in_s":60}`, 422)
	if last := set(`{"total_units":null}`); last.TotalUnits != 100 || last.TotalUnitsExpiresAt != 0 || last.Busy != 4 {
		t.Errorf("after a reset of the total: %+v", last)
	}
}

// PUT of a tenant or a class keeps what it leaves out, and null returns to the default.
func TestTenantKeepsWhatAChangeLeavesOut(t *testing.T) {
	s := start(t)
	for _, path := range []string{"/tenants/" + tenantA, "/tenants/" + tenantA + "/classes/bulk"} {
		unset := "<nil>"
		if !strings.Contains(path, "classes") {
			unset = "25"
		}
		for _, c := range []struct{ body, want string }{
			{`{}`, "1 " + unset + " false"},
			{`{"weight":3,"maxConcurrency":9,"paused":true}`, "3 9 true"},
			{`{"paused":false}`, "3 9 false"},
			{`{"maxConcurrency":null}`, "3 " + unset + " false"},
			{`{"paused":true}`, "3 " + unset + " true"},
			{`{"weight":null,"paused":null}`, "1 " + unset + " false"},
		} {
			s.schedules("PUT", path, c.body, 200)
			got := s.schedules("GET", path, "", 200)
			if shown := fmt.Sprint(got["weight"], " ", got["maxConcurrency"], " ", got["paused"]); shown != c.want {
				t.Errorf("PUT %s %s: weight, cap and pause are %s, want %s", path, c.body, shown, c.want)
			}
		}
	}
}
