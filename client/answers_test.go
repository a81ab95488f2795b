package client

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lessor"
)

func TestSubmitReportsWhetherTheJobExisted(t *testing.T) {
	for status, existing := range map[int]bool{http.StatusCreated: false, http.StatusOK: true} {
		s := serve(t, say(status, `{"job_id":"`+jobA+`","type":"mail","priority":"low","payload":{"n":1.50}}`))
		job, err := connect(t, s.URL).Submit(t.Context(), "mail", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if job.Existing != existing || job.ID != jobID(jobA) || job.Priority != lessor.Low ||
			string(job.Payload) != `{"n":1.50}` {
			t.Errorf("status %d: %+v", status, job)
		}
	}
}

func TestRequestReadsBothKindsOfGrantAndDenials(t *testing.T) {
	lease := `{"lease_id":"` + leaseA + `","fence":3}`
	job := `{"job_id":"` + jobA + `","priority":"normal"}`
	for _, tt := range []struct {
		name, answer string
		grants       int
		denied       lessor.DenialCode
		err          bool
	}{
		{name: "single", answer: `{"denied":false,"lease":` + lease + `,"job":` + job + `}`, grants: 1},
		{name: "many", answer: `{"denied":false,"grants":[{"lease":` + lease + `,"job":` + job +
			`},{"lease":` + lease + `,"job":` + job + `}]}`, grants: 2},
		{
			name: "denied", answer: `{"denied":true,"code":"no_capacity",` +
				`"reason":"No capacity (busy=8, usable=10, leased=10)","retry_after_ms":1500}`,
			denied: lessor.NoCapacity,
		},
		{name: "nothing", answer: `{}`, err: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, say(http.StatusOK, tt.answer))
			grants, denial, err := connect(t, s.URL).Request(t.Context(), lessor.LeaseRequest{WorkerID: new("w")})
			if (err != nil) != tt.err || len(grants) != tt.grants {
				t.Fatalf("grants %v, err %v", grants, err)
			}
			if tt.grants > 0 && (grants[0].Lease.Fence != 3 || grants[0].Job.ID != jobID(jobA)) {
				t.Errorf("grant = %+v", grants[0])
			}
			if tt.denied != "" && (denial == nil || denial.Code != tt.denied || denial.RetryAfterMS != 1500 ||
				denial.Reason == "") {
				t.Errorf("denial = %+v", denial)
			}
		})
	}
}

func TestRequestRepeatsUnderOneRequestID(t *testing.T) {
	s := serve(t, say(http.StatusServiceUnavailable, lost))
	_, _, err := connect(t, s.URL).Request(t.Context(), lessor.LeaseRequest{WorkerID: new("w")})
	asked := s.requests()
	if err == nil || len(asked) != 3 || asked[0] != asked[2] || !strings.Contains(asked[0], `"request_id":"`) {
		t.Errorf("asked %q", asked)
	}
	s = serve(t, say(http.StatusOK, `{"denied":true}`))
	_, _, _ = connect(t, s.URL).Request(t.Context(), lessor.LeaseRequest{WorkerID: new("w"), RequestID: new("mine")})
	if got := s.requests()[0]; !strings.Contains(got, `"request_id":"mine"`) {
		t.Errorf("asked %q", got)
	}
}

func TestRequestMayBeHeldLongerThanATry(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(60 * time.Millisecond)
		say(http.StatusOK, `{"denied":true}`)(w, r)
	})
	c, err := New(Config{Server: s.URL, Timeout: 30 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, err := c.Request(t.Context(), lessor.LeaseRequest{WaitMS: new(int64(30000))}); err != nil {
		t.Error(err)
	}
}

func TestBatchAnswersEachLease(t *testing.T) {
	s := serve(t, say(http.StatusOK, `{"results":[
		{"lease_id":"`+leaseA+`","ok":true,"expires_at":"2026-02-06T20:15:30.123Z",
			"heartbeat_after_ms":20000,"cancel_requested":true},
		{"lease_id":"`+leaseB+`","ok":false,"status":404,"code":"lease_not_found","ended_reason":"expired"}]}`))
	got, err := connect(t, s.URL).HeartbeatAll(t.Context(), "w", []lessor.LeaseID{leaseID(leaseA), leaseID(leaseB)})
	if err != nil {
		t.Fatal(err)
	}
	at := lessor.At(time.Date(2026, 2, 6, 20, 15, 30, 123e6, time.UTC))
	want := []LeaseAnswer{
		{LeaseID: leaseID(leaseA), Beat: lessor.HeartbeatAnswer{
			OK: true, ExpiresAt: at, HeartbeatAfterMS: 20000,
			CancelRequested: true,
		}},
		{LeaseID: leaseID(leaseB), Err: &lessor.Error{Code: lessor.CodeLeaseNotFound, EndedReason: "expired"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if !errors.Is(got[1].Err, lessor.ErrLeaseNotFound) {
		t.Error("the second is not lease_not_found")
	}
}

func TestListsFollowCursors(t *testing.T) {
	pages := map[string]string{
		"":   `{"jobs":[{"type":"a","priority":"normal"}],"next_cursor":"c1"}`,
		"c1": `{"jobs":[],"next_cursor":"c2"}`,
		"c2": `{"jobs":[{"type":"b","priority":"normal"}],"next_cursor":null}`,
	}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, pages[r.URL.Query().Get("cursor")])
	})
	var types []string
	for job, err := range connect(t, s.URL).AllJobs(t.Context(), lessor.JobFilter{State: lessor.Queued}) {
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, job.Type)
	}
	if diff := cmp.Diff([]string{"a", "b"}, types); diff != "" {
		t.Error(diff)
	}
	if n := len(s.requests()); n != 3 {
		t.Errorf("%d pages were read", n)
	}
}

func TestListEndsWhenTheCursorDoesNotAdvance(t *testing.T) {
	s := serve(t, say(http.StatusOK, `{"leases":[],"next_cursor":"same"}`))
	var last error
	for _, err := range connect(t, s.URL).AllLeases(t.Context(), "") {
		last = err
	}
	if !errors.Is(last, errSameCursor) || len(s.requests()) != 2 {
		t.Errorf("err = %v after %d pages", last, len(s.requests()))
	}
}

func TestTokensReadCamelCase(t *testing.T) {
	s := serve(t, say(http.StatusOK,
		`{"tokens":[{"id":"`+tokenA+`","name":"ci","role":"worker","tenantId":null,`+
			`"createdAt":"2026-02-06T20:15:30.123Z","expiresAt":null}],"nextCursor":null}`))
	got, err := connect(t, s.URL).Tokens(t.Context())
	if err != nil || len(got) != 1 || got[0].Name != "ci" || got[0].Role != "worker" || got[0].CreatedAt.IsZero() ||
		!got[0].ExpiresAt.IsZero() {
		t.Errorf("tokens = %+v, err %v", got, err)
	}
}

func TestBackupCopiesAndNoticesACut(t *testing.T) {
	whole := bytes.Repeat([]byte("lessor"), 100_000)
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(whole) })
	var got bytes.Buffer
	if n, err := connect(t, s.URL).Backup(t.Context(), &got); err != nil || n != int64(len(whole)) ||
		!bytes.Equal(got.Bytes(), whole) {
		t.Errorf("copied %d bytes, err %v", n, err)
	}
	cut := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(whole)
		panic(http.ErrAbortHandler)
	})
	if _, err := connect(t, cut.URL, cut.URL).Backup(t.Context(), io.Discard); err == nil {
		t.Error("a backup that was cut off passed as whole")
	}
	if n := len(cut.requests()); n != 1 {
		t.Errorf("a half written backup was begun %d times", n)
	}
}

func TestClockReadsTheServersDate(t *testing.T) {
	at := time.Date(2026, 2, 6, 20, 15, 30, 0, time.UTC)
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", at.Format(http.TimeFormat)) })
	if got, err := connect(t, s.URL).Clock(t.Context()); err != nil || !got.Equal(at) {
		t.Errorf("clock = %s, err %v", got, err)
	}
}

func TestTurnAnswersEachPart(t *testing.T) {
	s := serve(t, say(http.StatusOK, `{"complete":[{"lease_id":"`+leaseA+`","ok":true}],
		"heartbeat":[{"lease_id":"`+leaseA+`","ok":false,"status":404,
			"code":"lease_not_found","ended_reason":"expired"}],
		"request":{"denied":true,"code":"no_eligible_job","reason":"none","retry_after_ms":500}}`))
	got, err := connect(t, s.URL).Turn(t.Context(), lessor.Turn{WorkerID: new("w"), Request: &lessor.TurnRequest{}})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Complete) != 1 || got.Complete[0].Err != nil || got.Denial == nil || got.Denial.RetryAfterMS != 500 ||
		len(got.Heartbeat) != 1 || !errors.Is(got.Heartbeat[0].Err, lessor.ErrLeaseNotFound) {
		t.Errorf("the turn is answered %+v", got)
	}
	if all := s.requests(); len(all) != 1 || !strings.Contains(all[0], `"request_id"`) {
		t.Errorf("the server received %v, want one call with a request id", all)
	}
}
