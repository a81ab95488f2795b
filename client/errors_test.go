package client

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lessor"
)

func TestProblemBecomesTheServersError(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w,
			`{"type":"about:blank","title":"Not Found","status":404,
			"code":"lease_not_found","detail":"the lease is over",
			"ended_reason":"expired","trace_id":"abc","errors":[{"field":"jobs[3].priority","message":"unknown"}]}`)
	})
	_, err := connect(t, s.URL).Heartbeat(t.Context(), leaseID(leaseA), lessor.Heartbeat{})
	if !errors.Is(err, lessor.ErrLeaseNotFound) || errors.Is(err, lessor.ErrWorkerMismatch) {
		t.Errorf("err = %v does not match its code", err)
	}
	want := &lessor.Error{
		Code: lessor.CodeLeaseNotFound, Detail: "the lease is over", EndedReason: "expired", TraceID: "abc",
		RetryAfter: 7 * time.Second,
		Fields:     []lessor.FieldError{{Field: "jobs[3].priority", Message: "unknown"}},
	}
	got, _ := errors.AsType[*lessor.Error](err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func TestLostCommitIsMarked(t *testing.T) {
	s := serve(t, say(http.StatusServiceUnavailable, lost))
	_, err := connect(t, s.URL).Submit(t.Context(), "a", nil, nil)
	if e, ok := errors.AsType[*lessor.Error](err); !ok || !e.OutcomeUnknown || e.Code != lessor.CodeUnavailable {
		t.Errorf("err = %#v", err)
	}
}

func TestAnswersOfOtherProgramsAreErrors(t *testing.T) {
	for _, tt := range []struct {
		answer http.HandlerFunc
		want   string
	}{
		{say(http.StatusNotFound, "<html>"), "is it a Lessor server?"},
		{say(http.StatusOK, "<html>"), "decode answer"},
		{say(http.StatusFound, ""), "is it a Lessor server?"},
		{say(http.StatusForbidden, `{"message":"no"}`), "403 Forbidden"},
	} {
		s := serve(t, tt.answer)
		_, err := connect(t, s.URL).Status(t.Context())
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("err = %v, want %q in it", err, tt.want)
		}
		if n := len(s.requests()); n != 1 {
			t.Errorf("asked %d times", n)
		}
	}
}

func TestBodyThatAGatewayRefusesIsTooLarge(t *testing.T) {
	s := serve(t, say(http.StatusRequestEntityTooLarge, "<html>"))
	_, err := connect(t, s.URL).Submit(t.Context(), "a", nil, nil)
	if lessor.CodeOf(err) != lessor.CodePayloadTooLarge || !strings.Contains(err.Error(), "a gateway before "+s.URL) {
		t.Errorf("err = %v, want payload_too_large of a gateway", err)
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
}

func TestRetryAfterIsReadAndBounded(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"": 0, "0": 0, "3": 3 * time.Second, "-1": 0, "x": 0, "99999999999": 0, "2000000000": 24 * time.Hour,
	} {
		if got := retryAfter(header); got != want {
			t.Errorf("retryAfter(%q) = %s, want %s", header, got, want)
		}
	}
}
