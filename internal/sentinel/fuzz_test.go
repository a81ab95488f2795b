package sentinel

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"lessor"
)

// FuzzRecords writes any bytes where a shim writes its sentinel, its exit record and the fence below which attempts
// end. Each is refused with a Reason, or is one of this job that is written and read as itself.
func FuzzRecords(f *testing.F) {
	pulse, err := json.Marshal(pulse(jobA, 3))
	if err != nil {
		f.Fatal(err)
	}
	exit, err := json.Marshal(Exit{
		JobID: jobA, LeaseID: lessor.LeaseID(jobA), WorkerID: "w", Fence: 7, Status: "failed",
		ExitCode: -1, Signal: "killed", Error: "x", Result: json.RawMessage(`{"n":1}`),
	})
	if err != nil {
		f.Fatal(err)
	}
	for which, text := range [][]byte{pulse, exit, []byte("8\n")} {
		f.Add(uint8(which), text)
		f.Add(uint8(which), text[:len(text)/2])
	}
	f.Add(uint8(0), []byte(`{"jobId":"../../etc"}`))
	f.Add(uint8(2), []byte(`-9223372036854775809`))
	folder := makeFolder(f, open(f), jobA)
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		switch which % 3 {
		case 0:
			var s, again Sentinel
			if valid(t, parse(data, &s, func() error { return s.check(jobA) })) {
				rewritten(t, s, &again, func() error { return again.check(jobA) })
			}
		case 1:
			var e, again Exit
			if valid(t, parse(data, &e, func() error { return e.check(jobA) })) {
				rewritten(t, e, &again, func() error { return again.check(jobA) })
			}
		default:
			if err := os.WriteFile(folder.Join(stopName), data, 0o600); err != nil {
				t.Fatal(err)
			}
			asked, err := folder.AskedToStop(7)
			if below, _ := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); valid(t, err) &&
				asked != (below > 7) {
				t.Errorf("a stop below %q ends the attempt with fence 7: %v", data, asked)
			}
		}
	})
}

// valid reports whether a record was accepted, and fails if it was refused without a reason.
func valid(t *testing.T, err error) bool {
	t.Helper()
	if refused, ok := errors.AsType[*InvalidError](err); err != nil && (!ok || refused.Reason == "") {
		t.Errorf("refused without a reason: %v", err)
	}
	return err == nil
}

// rewritten fails unless a record is read as it is written.
func rewritten[T any](t *testing.T, record T, again *T, check func() error) {
	t.Helper()
	data, err := json.Marshal(record)
	if err == nil {
		err = parse(data, again, check)
	}
	if written, _ := json.Marshal(again); err != nil || !bytes.Equal(written, data) {
		t.Errorf("%s is read back with %v as %s", data, err, written)
	}
}
