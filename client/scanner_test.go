package client

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"lessor"
	"lessor/internal/scan"
	"lessor/internal/scan/scantest"
)

// TestScannerReadsWhatEncodingJSONReads writes random answers, and damages some of them. The scanner reads those that
// are whole, and what it accepts it reads as encoding/json does.
func TestScannerReadsWhatEncodingJSONReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		compare[requestAnswer](t)
		compare[jobsAnswer](t)
		compare[jobAnswer](t)
		compare[beatAnswer](t)
		compare[resultsAnswer](t)
		compare[turnAnswer](t)
	})
}

func compare[T any](t *rapid.T) {
	v := rapid.MakeCustom[T](wire).Draw(t, "answer")
	whole, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if rapid.Bool().Draw(t, "with space") {
		if whole, err = json.MarshalIndent(v, " ", "\t"); err != nil {
			t.Fatal(err)
		}
		whole = append(whole, '\n')
	}
	if !agree[T](t, whole) {
		t.Fatalf("the scanner does not read %s", whole)
	}
	agree[T](t, scantest.Damage(t, whole))
}

// failing is a test, of rapid or not.
type failing interface {
	Fatalf(format string, args ...any)
}

// agree reports whether the scanner accepts b, and fails if it reads it otherwise than encoding/json.
func agree[T any](t failing, b []byte) bool {
	var fast, slow T
	a, ok := any(&fast).(scanned)
	if !ok {
		t.Fatalf("%T is not scanned", fast)
	}
	if !scan.Read(b, func(s *scan.Scanner) { a.scan(scanner{s}) }) {
		return false
	}
	if err := json.Unmarshal(b, &slow); err != nil {
		t.Fatalf("the scanner accepts %s, and encoding/json says %v", b, err)
	}
	if diff := cmp.Diff(slow, fast, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Fatalf("%s is read otherwise (-encoding/json +scanner):\n%s", b, diff)
	}
	return true
}

// wire says how random answers are made: of values that JSON can carry.
var wire = rapid.MakeConfig{Types: map[reflect.Type]*rapid.Generator[any]{
	reflect.TypeFor[json.RawMessage](): rapid.Map(rapid.SampledFrom([]string{
		`{}`, `null`, `{"a":[1,-2.5e+3,"x \" y\\\u0041"],"b":{"c":[],"d":null}}`, `[0,0.1,true,false,[[[]]]]`, `"é"`,
	}), func(s string) json.RawMessage { return json.RawMessage(s) }).AsAny(),
	reflect.TypeFor[string](): rapid.OneOf(rapid.String(),
		rapid.SampledFrom([]string{"", "same", "same", "\"\\\n\x00", "é\xff<>&\u2028"})).AsAny(),
	reflect.TypeFor[lessor.Instant](): rapid.Map(rapid.OneOf(rapid.Just[int64](0), rapid.Int64Range(-6e13, 2e14)),
		func(n int64) lessor.Instant { return lessor.Instant(n) }).AsAny(),
	reflect.TypeFor[lessor.Priority](): rapid.Map(rapid.IntRange(0, lessor.Priorities-1),
		func(n int) lessor.Priority { return lessor.Priority(n) }).AsAny(),
}}

// TestAnswerThatTheScannerRefusesIsStillRead has a field in another case, which only encoding/json knows.
func TestAnswerThatTheScannerRefusesIsStillRead(t *testing.T) {
	var a jobsAnswer
	if err := decode([]byte(`{"jobs":[{"Type":"x","attempt":1e0}],"new_field":{"a":[1]}}`), &a); err == nil {
		t.Error("encoding/json reads 1e0 as an int")
	}
	if err := decode([]byte(`{"jobs":[{"Type":"x","attempt":2}],"new_field":{"a":[1]}}`), &a); err != nil {
		t.Fatal(err)
	}
	if len(a.Jobs) != 1 || a.Jobs[0].Type != "x" || a.Jobs[0].Attempt != 2 {
		t.Errorf("read %+v", a.Jobs)
	}
}
