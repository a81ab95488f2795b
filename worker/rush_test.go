package worker

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"lessor"
	"lessor/client"
)

// forbidding is a server that refuses every call.
type forbidding struct{}

func (forbidding) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/problem+json"}},
		Body: io.NopCloser(strings.NewReader(`{"code":"forbidden","detail":"no"}`)), Request: req,
	}, nil
}

// TestTurnWakesTheFinishingLoopAfterTheRush: no other turn will carry the completions of a lost one.
func TestTurnWakesTheFinishingLoopAfterTheRush(t *testing.T) {
	for _, on := range []bool{false, true} {
		w := idle(t)
		w.rush.on = on
		w.ends = []*lease{{phase: ending, end: end{status: "completed"}}}
		if _, _, err := w.turn(t.Context(), lessor.LeaseRequest{}); err == nil {
			t.Fatal("a server that does not exist answered")
		}
		if woken := len(w.ending) == 1; woken == on || len(w.ends) != 1 {
			t.Errorf("%d ends are left; with rush %t the finishing loop was woken: %t", len(w.ends), on, woken)
		}
	}
}

func TestRefusedLoopFreesItsPlaces(t *testing.T) {
	w := idle(t)
	c, err := client.New(client.Config{Server: "http://127.0.0.1", HTTP: &http.Client{Transport: forbidding{}}})
	if err != nil {
		t.Fatal(err)
	}
	w.cfg.Client, w.rush.on = c, true
	h := &handler{jobType: "x", limit: 10}
	w.register(h)
	if err := w.requestLoop(t.Context(), t.Context(), true); lessor.CodeOf(err) != lessor.CodeForbidden {
		t.Errorf("the loop ended with %v, want a refusal", err)
	}
	if w.asked != 0 || h.asked != 0 {
		t.Errorf("%d places and %d of the type are reserved for no request", w.asked, h.asked)
	}
}
