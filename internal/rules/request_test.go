package rules

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"lessor"
)

// bounds submits each body to a check and compares what is refused; "" means accepted. The worker is there unless the
// body has its own.
func bounds[T any](t *testing.T, worker func(*T) **string, check func(*T) error, table map[string]string) {
	t.Helper()
	for body, want := range table {
		var v T
		*worker(&v) = new("w1")
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatalf("the test's body %.80s is not a %T: %v", body, v, err)
		}
		err := check(&v)
		var got []string
		for _, f := range fieldsOf(err) {
			got = append(got, f.Field+": "+f.Message)
		}
		if s := strings.Join(got, "; "); s != want || (err == nil) != (want == "") {
			t.Errorf("%.80s is refused with %q (error %v), want %q", body, s, err, want)
		}
		if want != "" {
			refused(t, err, lessor.CodeInvalidValue)
		}
	}
}

// field returns a body with one text of n characters.
func field(name string, n int) string { return fmt.Sprintf(`{%q: %q}`, name, strings.Repeat("é", n)) }

// sized returns a body with one JSON value of n bytes.
func sized(name string, n int) string { return fmt.Sprintf(`{%q: %q}`, name, strings.Repeat("x", n-2)) }

const (
	workerLong  = "worker_id: must be 1 to 200 characters long, not 201"
	workerEmpty = "worker_id: must be 1 to 200 characters long, not 0"
	checkpoint  = "checkpoint: must be at most 65536 bytes, not 65537"
)

func TestLeaseRequestBounds(t *testing.T) {
	types := func(n int, each string) string {
		raw, _ := json.Marshal(map[string]any{"types": slices.Repeat([]string{each}, n)}) // strings always marshal
		return string(raw)
	}
	check := func(r *lessor.LeaseRequest) error { _, err := Request(r, ""); return err }
	bounds(t, func(r *lessor.LeaseRequest) **string { return &r.WorkerID }, check, map[string]string{
		`{}`: "", field("worker_id", 1): "", field("worker_id", 200): "", field("worker_id", 0): workerEmpty,
		field("worker_id", 201): workerLong,
		`{"max_units": 1}`:      "", `{"max_units": 2147483647}`: "",
		`{"max_units": 0}`:          "max_units: must be 1 to 2147483647, not 0",
		`{"max_units": 2147483648}`: "max_units: must be 1 to 2147483647, not 2147483648",
		`{"max_leases": 1}`:         "", `{"max_leases": 500}`: "",
		`{"max_leases": 0}`:   "max_leases: must be 1 to 500, not 0",
		`{"max_leases": 501}`: "max_leases: must be 1 to 500, not 501",
		`{"wait_ms": 0}`:      "", `{"wait_ms": 30000}`: "",
		`{"wait_ms": -1}`:    "wait_ms: must be 0 to 30000, not -1",
		`{"wait_ms": 30001}`: "wait_ms: must be 0 to 30000, not 30001",
		`{"ttl_ms": 100}`:    "", `{"ttl_ms": 43200000}`: "",
		`{"ttl_ms": 99}`:       "ttl_ms: must be 100 to 43200000, not 99",
		`{"ttl_ms": 43200001}`: "ttl_ms: must be 100 to 43200000, not 43200001",
		field("request_id", 1): "", field("request_id", 200): "",
		field("request_id", 0):     "request_id: must be 1 to 200 characters long, not 0",
		field("request_id", 201):   "request_id: must be 1 to 200 characters long, not 201",
		field("workspace_id", 1):   "",
		field("workspace_id", 200): "",
		field("workspace_id", 0):   "workspace_id: must be 1 to 200 characters long, not 0",
		field("workspace_id", 201): "workspace_id: must be 1 to 200 characters long, not 201",
		`{"types": []}`:            "", types(200, "a"): "", types(1, strings.Repeat("é", 120)): "",
		types(201, "a"):                    "types: must be at most 200, not 201",
		`{"types": ["a", ""]}`:             "types[1]: must be 1 to 120 characters long, not 0",
		types(1, strings.Repeat("é", 121)): "types[0]: must be 1 to 120 characters long, not 121",
		`{"max_units": 0, "max_leases": 0}`: "max_units: must be 1 to 2147483647, not 0; " +
			"max_leases: must be 1 to 500, not 0",
		`{"ttl_ms": -9223372036854775808}`:   "ttl_ms: must be 100 to 43200000, not -9223372036854775808",
		`{"worker_id": "w\u0000"}`:           "worker_id: must be UTF-8 text without NUL characters",
		`{"types": ["\u0000"], "wait_ms":1}`: "types[0]: must be UTF-8 text without NUL characters",
	})
}

func TestLeaseRequestDefaultsAndValues(t *testing.T) {
	got, err := Request(&lessor.LeaseRequest{WorkerID: new("w1")}, "")
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	same(t, "the least that can be asked", got, Ask{Worker: "w1", MaxLeases: 1})
	got, err = Request(&lessor.LeaseRequest{
		WorkerID: new("w1"), MaxUnits: new(int64(8)), Types: []string{"a"}, MaxLeases: new(int64(3)),
		WaitMS:    new(int64(1500)),
		RequestID: new("r1"), TTLMS: new(int64(90000)), WorkspaceID: new("ws"), View: new("work"),
	}, "")
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	same(t, "all that can be asked", got, Ask{
		Worker: "w1", Types: []string{"a"}, MaxUnits: 8, MaxLeases: 3, Wait: 1500 * time.Millisecond, RequestID: "r1",
		TTL: 90 * time.Second, WorkspaceID: "ws",
	})
}

func TestHeartbeatBounds(t *testing.T) {
	check := func(b *lessor.Heartbeat) error { _, err := Heartbeat(b); return err }
	bounds(t, func(b *lessor.Heartbeat) **string { return &b.WorkerID }, check, map[string]string{
		`{}`: "", field("worker_id", 200): "", field("worker_id", 0): workerEmpty, field("worker_id", 201): workerLong,
		`{"progress": 0}`: "", `{"progress": 1}`: "",
		`{"progress": -0.0001}`: "progress: must be 0 to 1, not -0.0001",
		`{"progress": 1.0001}`:  "progress: must be 0 to 1, not 1.0001",
		field("message", 0):     "", field("message", 500): "",
		field("message", 501):      "message: must be 0 to 500 characters long, not 501",
		sized("checkpoint", 65536): "",
		sized("checkpoint", 65537): checkpoint,
		`{"checkpoint": null}`:     "",
		`{"ttl_ms": 100}`:          "", `{"ttl_ms": 43200000}`: "",
		`{"ttl_ms": 99}`:       "ttl_ms: must be 100 to 43200000, not 99",
		`{"ttl_ms": 43200001}`: "ttl_ms: must be 100 to 43200000, not 43200001",
	})
	if _, err := Heartbeat(&lessor.Heartbeat{WorkerID: new("w1"), Progress: new(math.NaN())}); err == nil {
		t.Error("progress that is not a number is accepted")
	}
}

func TestHeartbeatIsReadCompletely(t *testing.T) {
	got, err := Heartbeat(&lessor.Heartbeat{
		WorkerID: new("w1"), Progress: new(0.5), Message: new("half"), Checkpoint: json.RawMessage(`{"p":1}`),
		TTLMS: new(int64(250)),
	})
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	same(t, "the heartbeat", got, BeatAsk{
		Worker: "w1", TTL: 250 * time.Millisecond,
		Report: &Report{Progress: new(0.5), Message: new("half"), Checkpoint: json.RawMessage(`{"p":1}`)},
	})
	got, err = Heartbeat(&lessor.Heartbeat{WorkerID: new("w1"), Checkpoint: json.RawMessage(`null`)})
	if err != nil || got.Report != nil {
		t.Errorf("a null checkpoint becomes %+v (error %v); it should keep the one before", got.Report, err)
	}
}

func TestCompletionBounds(t *testing.T) {
	check := func(d *lessor.Completion) error {
		if d.Status == nil {
			d.Status = new("failed")
		}
		_, err := Completion(d, "")
		return err
	}
	bytes := func(n int) string {
		return fmt.Sprintf(`{"error": %q}`, strings.Repeat("é", n/2)+strings.Repeat("x", n%2))
	}
	bounds(t, func(d *lessor.Completion) **string { return &d.WorkerID }, check, map[string]string{
		`{"status": "completed"}`: "", `{"status": "failed"}`: "", `{"status": "cancelled"}`: "",
		`{"status": "released"}`:   `status: must be completed, failed, cancelled or waiting, not "released"`,
		`{"status": ""}`:           `status: must be completed, failed, cancelled or waiting, not ""`,
		field("worker_id", 200):    "",
		field("worker_id", 0):      workerEmpty,
		field("worker_id", 201):    workerLong,
		bytes(0):                   "",
		bytes(8192):                "",
		bytes(8193):                "error: must be at most 8192 bytes, not 8193",
		bytes(20000):               "error: must be at most 8192 bytes, not 20000",
		`{"error": "a\u0000"}`:     "error: must be UTF-8 text without NUL characters",
		sized("checkpoint", 65536): "",
		sized("checkpoint", 65537): checkpoint,
	})
}

func TestCompletionAsksForAnEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		body lessor.Completion
		want End
	}{
		{
			"completed",
			lessor.Completion{Status: new("completed"), Result: json.RawMessage(`{"ok":1}`)},
			ends["completed"],
		},
		{
			"completed with null",
			lessor.Completion{Status: new("completed"), Result: json.RawMessage(`null`)},
			End{Outcome: OutcomeCompleted, Said: SaidCompleted, Reason: "completed", Actor: "w1"},
		},
		{"failed", lessor.Completion{Status: new("failed"), Error: new("boom")}, ends["failed"]},
		{
			"failed, retryable",
			lessor.Completion{Status: new("failed"), Error: new("boom"), Retryable: new(true)},
			ends["failed"],
		},
		{
			"failed, not retryable",
			lessor.Completion{Status: new("failed"), Error: new("boom"), Retryable: new(false)},
			ends["failed for good"],
		},
		{"cancelled", lessor.Completion{Status: new("cancelled")}, ends["obeyed"]},
	} {
		c.body.WorkerID, c.body.Checkpoint = new("w1"), json.RawMessage(`7`)
		c.body.Progress, c.body.Message = new(0.5), new("half")
		end, err := Completion(&c.body, "")
		if err != nil {
			t.Errorf("%s: refused: %v", c.name, err)
		}
		c.want.Report = Report{Progress: new(0.5), Message: new("half"), Checkpoint: c.body.Checkpoint}
		c.want.Said = said(*c.body.Status, c.want.Result, c.want.Error)
		same(t, c.name+": the end", end, c.want)
	}
}

func TestCompletionInABatchNamesItsFields(t *testing.T) {
	_, err := Completion(&lessor.Completion{WorkerID: new(""), Status: new("done")}, "leases[2].")
	wrong(t, err,
		lessor.FieldError{Field: "worker_id", Message: "must be 1 to 200 characters long, not 0"},
		lessor.FieldError{
			Field: "leases[2].status", Message: `must be completed, failed, cancelled or waiting, not "done"`,
		})
	_, err = Completion(&lessor.Completion{WorkerID: new("w1"), Status: new("waiting")}, "leases[2].")
	wrong(t, err, lessor.FieldError{
		Field:   "leases[2].status",
		Message: "must be completed, failed or cancelled; to ask a question, complete the lease alone",
	})
	_, err = Completion(&lessor.Completion{WorkerID: new("w1")}, "leases[2].")
	same(t, "what is missing", fieldsOf(err), []lessor.FieldError{{Field: "leases[2].status", Message: "is required"}})
}

func TestReleaseBounds(t *testing.T) {
	check := func(r *lessor.Release) error { _, err := Release(r); return err }
	bounds(t, func(r *lessor.Release) **string { return &r.WorkerID }, check, map[string]string{
		`{}`: "", field("worker_id", 200): "", field("worker_id", 0): workerEmpty, field("worker_id", 201): workerLong,
		`{"delay_ms": 0}`: "", `{"delay_ms": 2592000000}`: "",
		`{"delay_ms": -1}`:         "delay_ms: must be 0 to 2592000000, not -1",
		`{"delay_ms": 2592000001}`: "delay_ms: must be 0 to 2592000000, not 2592000001",
		sized("checkpoint", 65536): "",
		sized("checkpoint", 65537): checkpoint,
		`{"progress": 1}`:          "", `{"progress": 1.1}`: "progress: must be 0 to 1, not 1.1",
		`{"reason": "cannot_start"}`: "", `{"reason": "folder_held"}`: "", `{"reason": "undelivered"}`: "",
		`{"reason": "tired"}`: `reason: must be cannot_start, folder_held or undelivered, not "tired"`,
	})
	for reason, least := range map[string]time.Duration{
		"cannot_start": time.Second, "folder_held": time.Second,
		"undelivered": 0,
	} {
		for _, asked := range []time.Duration{0, time.Second - time.Millisecond, 2 * time.Second} {
			end, err := Release(&lessor.Release{
				WorkerID: new("w1"), DelayMS: new(asked.Milliseconds()),
				Reason: &reason,
			})
			want := ends["released"]
			want.Reason, want.Uncounted, want.Delay = reason, true, max(asked, least)
			if err != nil {
				t.Errorf("refused: %v", err)
			}
			same(t, reason, end, want)
		}
	}
	end, err := Release(&lessor.Release{
		WorkerID: new("w1"), DelayMS: new(int64(1500)),
		Checkpoint: json.RawMessage(`7`),
	})
	want := ends["released"]
	want.Delay, want.Report.Checkpoint = 1500*time.Millisecond, json.RawMessage(`7`)
	if err != nil {
		t.Errorf("refused: %v", err)
	}
	same(t, "the end", end, want)
}

func TestRevokeBounds(t *testing.T) {
	for n, ok := range map[int]bool{0: true, 200: true, 201: false} {
		if _, err := Revoke(strings.Repeat("é", n), "olga"); (err == nil) != ok {
			t.Errorf("a reason of %d characters: error %v, want accepted %v", n, err, ok)
		}
	}
	end, err := Revoke("node is going", "olga")
	if err != nil {
		t.Errorf("refused: %v", err)
	}
	same(t, "the end", end, ends["revoked"])
}

func TestWorkerIDIsRequiredEverywhere(t *testing.T) {
	_, request := Request(&lessor.LeaseRequest{}, "")
	_, beat := Heartbeat(&lessor.Heartbeat{})
	_, completion := Completion(&lessor.Completion{Status: new("failed")}, "leases[0].")
	_, release := Release(&lessor.Release{})
	_, batch := WorkerID(nil)
	for name, err := range map[string]error{
		"a request": request, "a heartbeat": beat, "a completion": completion,
		"a release": release, "a batch": batch,
	} {
		refused(t, err, lessor.CodeInvalidRequest)
		same(t, "what is missing in "+name, fieldsOf(err),
			[]lessor.FieldError{{Field: "worker_id", Message: "is required"}})
	}
	for n, ok := range map[int]bool{0: false, 1: true, 200: true, 201: false} {
		if _, err := WorkerID(new(strings.Repeat("é", n))); (err == nil) != ok {
			t.Errorf("a worker_id of %d characters in a batch: error %v, want accepted %v", n, err, ok)
		}
	}
}

// TestPlainHeartbeatAllocatesNothing: there are more heartbeats than any other call.
func TestPlainHeartbeatAllocatesNothing(t *testing.T) {
	b := lessor.Heartbeat{WorkerID: new("w")}
	if n := testing.AllocsPerRun(100, func() { _, _ = Heartbeat(&b) }); n != 0 {
		t.Errorf("a heartbeat without a report allocates %v times", n)
	}
}
