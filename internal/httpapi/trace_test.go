package httpapi

import (
	"net/http"
	"strings"
	"testing"
)

func TestOnlyAValidTraceparentIsContinued(t *testing.T) {
	const id, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for _, tt := range []struct {
		name, header string
		want         bool
	}{
		{"usual", "00-" + id + "-" + span + "-01", true},
		{"later version", "01-" + id + "-" + span + "-01", true},
		{"later version with more", "01-" + id + "-" + span + "-01-what-ever", true},
		{"more in version 00", "00-" + id + "-" + span + "-01-x", false},
		{"forbidden version", "ff-" + id + "-" + span + "-01", false},
		{"zero trace", "00-" + strings.Repeat("0", 32) + "-" + span + "-01", false},
		{"zero span", "00-" + id + "-" + strings.Repeat("0", 16) + "-01", false},
		{"upper case", "00-" + strings.ToUpper(id) + "-" + span + "-01", false},
		{"short", "00-" + id[1:] + "-" + span + "-01", false},
		{"not hexadecimal", "00-" + strings.Repeat("g", 32) + "-" + span + "-01", false},
		{"garbage", "-----", false},
		{"empty", "", false},
	} {
		h := http.Header{"Traceparent": {tt.header}}
		got := continueTrace(h)
		if tt.want && (got.id != id || got.given != id || got.flags != "01") || !tt.want &&
			(got.given != "" || got.id == id || !isHex(got.id, 32)) {
			t.Errorf("%s: %+v, continued should be %v", tt.name, got, tt.want)
		}
	}
	if got := continueTrace(http.Header{"Traceparent": {
		"00-" + id + "-" + span + "-01",
		"00-" + id + "-" + span + "-01",
	}}); got.given != "" {
		t.Error("two headers are not one trace")
	}
}

func TestTraceIsContinued(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	s := start(t)
	sent := header("Traceparent", "00-"+id+"-00f067aa0ba902b7-01")
	w := s.call("POST", scheduling+"/jobs", `{"type":"x"}`, sent)
	if got := decoded(t, w)["trace_id"]; got != id {
		t.Errorf("the job's trace is %v, want the one that was sent", got)
	}
	got := w.Header().Get("Traceparent")
	if !strings.HasPrefix(got, "00-"+id+"-") || !strings.HasSuffix(got, "-01") ||
		strings.Contains(got, "00f067aa0ba902b7") {
		t.Errorf("the answer has traceparent %q, want the same trace, our own span, the same flags", got)
	}
	if p := decoded(t, s.call("GET", "/nowhere", "", sent)); p["trace_id"] != id {
		t.Errorf("the problem's trace is %v", p["trace_id"])
	}
	// Without one the job's trace is made from its id (SPEC 4.2), and the answer's is new.
	w = s.call("POST", scheduling+"/jobs", `{"type":"x"}`)
	job := decoded(t, w)
	if want := strings.ReplaceAll(job["job_id"].(string), "-", ""); job["trace_id"] != want ||
		w.Header().Get("Traceparent") == "" {
		t.Errorf("trace_id %v, want %s; traceparent %q", job["trace_id"], want, w.Header().Get("Traceparent"))
	}
}
