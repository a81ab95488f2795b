package lessor_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"lessor"
)

// examples maps each JSON example of the contract to its type. The number at the beginning of the name is its seed.
var examples = map[string]func() any{
	"000_heartbeat_request.json":  func() any { return new(lessor.Heartbeat) },
	"000_heartbeat_response.json": func() any { return new(lessor.HeartbeatAnswer) },
	"001_lease_request.json":      func() any { return new(lessor.LeaseRequest) },
	"001_lease_granted.json": func() any {
		return new(struct {
			Denied bool `json:"denied"`
			lessor.Grant
		})
	},
	"001_lease_denied.json":      func() any { return new(lessor.Denial) },
	"002_envelope_cron.json":     func() any { return new(lessor.Envelope) },
	"002_envelope_interval.json": func() any { return new(lessor.Envelope) },
	"002_run_claimed.json":       func() any { return new(lessor.Run) },
	"002_run_failed.json":        func() any { return new(lessor.Run) },
	"004_heartbeats.json":        func() any { return new(lessor.JobHeartbeats) },
	"004_stale.json":             func() any { return new(lessor.StaleJobs) },
	"004_health.json":            func() any { return new(lessor.JobHealth) },
}

// Every example of the contract decodes without an unknown field, and encodes with every field and value that it had,
// possibly with more fields.
func TestContractExamplesSurvive(t *testing.T) {
	files, err := filepath.Glob("testdata/contract/*.json")
	if err != nil || len(files) != len(examples) {
		t.Fatalf("%d examples are in testdata/contract, %d are known (%v)", len(files), len(examples), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			sent, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			word := examples[filepath.Base(file)]
			if word == nil {
				t.Fatal("the table has no type for this example")
			}
			v := word()
			dec := json.NewDecoder(bytes.NewReader(sent))
			dec.DisallowUnknownFields()
			if err := dec.Decode(v); err != nil {
				t.Fatalf("decode: %v", err)
			}
			back, err := json.Marshal(v)
			if err != nil {
				t.Fatalf("encode: %v", err)
			}
			for _, lost := range lostIn("", loose(t, sent), loose(t, back)) {
				t.Error(lost)
			}
		})
	}
}

// The check above must be able to fail.
func TestContractCheckFindsLosses(t *testing.T) {
	for _, tt := range []struct{ sent, back, want string }{
		{`{"a":1}`, `{"a":1,"b":null}`, ""},
		{`{"a":1}`, `{}`, ".a"},
		{`{"a":null}`, `{}`, ".a"},
		{`{"a":1.0}`, `{"a":1}`, ".a"},
		{`{"a":{"b":[1,2]}}`, `{"a":{"b":[1]}}`, ".a.b"},
		{`{"a":"2026-02-06T20:15:30.123Z"}`, `{"a":"2026-02-06T20:15:30Z"}`, ".a"},
	} {
		lost := strings.Join(lostIn("", loose(t, []byte(tt.sent)), loose(t, []byte(tt.back))), "; ")
		if (tt.want == "") != (lost == "") || !strings.HasPrefix(lost, tt.want) {
			t.Errorf("%s → %s: found %q, want %q", tt.sent, tt.back, lost, tt.want)
		}
	}
}

// loose reads JSON without a type, numbers as they are written.
func loose(t *testing.T, b []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return v
}

// lostIn lists the fields of sent that back does not have, or has otherwise.
func lostIn(path string, sent, back any) (lost []string) {
	was, ok := sent.(map[string]any)
	is, same := back.(map[string]any)
	if !ok || !same {
		if !reflect.DeepEqual(sent, back) {
			lost = append(lost, fmt.Sprintf("%s was %v and is %v", path, sent, back))
		}
		return lost
	}
	for name, v := range was {
		if _, ok := is[name]; !ok {
			lost = append(lost, fmt.Sprintf("%s.%s is gone", path, name))
			continue
		}
		lost = append(lost, lostIn(path+"."+name, v, is[name])...)
	}
	return lost
}
