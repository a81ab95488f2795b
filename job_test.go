package lessor_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lessor"
)

func TestPriorityTravelsByName(t *testing.T) {
	for p, name := range map[lessor.Priority]string{
		lessor.High: "high", lessor.Normal: "normal", lessor.Low: "low",
		lessor.Background: "background",
	} {
		raw, err := json.Marshal(p)
		if err != nil || string(raw) != `"`+name+`"` {
			t.Errorf("%s is written %s (error %v)", name, raw, err)
		}
		var back lessor.Priority
		if err := json.Unmarshal(raw, &back); err != nil || back != p {
			t.Errorf("%s is read back as %s (error %v)", raw, back, err)
		}
	}
	for _, text := range []string{`"HIGH"`, `""`, `"urgent"`, `0`, `"priority(7)"`} {
		p := lessor.Low
		if err := json.Unmarshal([]byte(text), &p); err == nil {
			t.Errorf("%s is read as %s, want it refused", text, p)
		}
	}
	if got := lessor.Priority(7).String(); got != "priority(7)" {
		t.Errorf("a priority that is none shows as %q", got)
	}
}

func TestHigherPrioritiesSortFirst(t *testing.T) {
	if !(lessor.High < lessor.Normal && lessor.Normal < lessor.Low && lessor.Low < lessor.Background &&
		int(lessor.Background) == lessor.Priorities-1) {
		t.Error("the priorities are not in the order high, normal, low, background")
	}
}

func TestStatesAreListedOnceInTheOrderOfLife(t *testing.T) {
	want := []lessor.State{"queued", "leased", "running", "waiting", "completed", "failed", "expired", "cancelled"}
	if diff := cmp.Diff(want, lessor.States()); diff != "" {
		t.Errorf("the states differ (-want +got):\n%s", diff)
	}
	lessor.States()[0] = "spoilt"
	if got := lessor.States()[0]; got != lessor.Queued {
		t.Errorf("a caller could change the list of states for others: it begins with %q", got)
	}
}
