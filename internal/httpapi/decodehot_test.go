package httpapi

import (
	stdjson "encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"lessor"
	"lessor/internal/scan/scantest"
)

// TestHotBodiesAreReadAsTheGeneralDecoderReadsThem writes random bodies, and damages some of them. Those that are whole
// are read without reflection, and what is read so is what the general decoder reads.
func TestHotBodiesAreReadAsTheGeneralDecoderReadsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		compareBodies[lessor.Heartbeat](t)
		compareBodies[beatBatch](t)
		compareBodies[lessor.LeaseRequest](t)
		compareBodies[lessor.Completion](t)
		compareBodies[completionBatch](t)
		compareBodies[lessor.Turn](t)
		compareBodies[lessor.JournalAppend](t)
		compareBodies[lessor.Submission](t)
		compareBodies[jobBatch](t)
	})
}

func compareBodies[T any](t *rapid.T) {
	v := rapid.MakeCustom[T](hotBody).Draw(t, "body")
	whole, err := stdjson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if rapid.Bool().Draw(t, "with space") {
		if whole, err = stdjson.MarshalIndent(v, " ", "\t"); err != nil {
			t.Fatal(err)
		}
	}
	if !agreeOn[T](t, whole) && decodeAny(whole, new(T)) == nil {
		t.Fatalf("%s is left to the general decoder", whole)
	}
	agreeOn[T](t, scantest.Damage(t, whole))
}

// agreeOn reports whether b is read without reflection, and fails if it is then read otherwise than in general.
func agreeOn[T any](t interface {
	Helper()
	Fatalf(format string, args ...any)
}, b []byte,
) bool {
	t.Helper()
	var fast, slow T
	if !decodeHot(b, &fast) {
		return false
	}
	if err := decodeAny(b, &slow); err != nil {
		t.Fatalf("the fast decoder accepts %s, and the general one says %v", b, err)
	}
	if diff := cmp.Diff(slow, fast, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Fatalf("%s is read otherwise (-general +fast):\n%s", b, diff)
	}
	return true
}

// hotBody says how random bodies are made: without the fields that are left to the general decoder.
var hotBody = rapid.MakeConfig{Types: map[reflect.Type]*rapid.Generator[any]{
	reflect.TypeFor[stdjson.RawMessage](): rapid.Map(rapid.SampledFrom([]string{
		`{}`, `null`, `{"a":[1,-2.5e+3,"x \" y\\\u0041"],"b":{"a":[],"d":null},"c":{"a":{"a":1}}}`,
		`[0,0.1,true,false,[[[]]],{"a":1},{"a":2}]`, `"é"`, `"\ud800"`, `1e400000`,
	}), func(s string) stdjson.RawMessage { return stdjson.RawMessage(s) }).AsAny(),
	reflect.TypeFor[string]():               rapid.SampledFrom([]string{"", "same", "é 漢 𝄞", "null", "a b"}).AsAny(),
	reflect.TypeFor[[]lessor.OutputChunk](): rapid.Just[[]lessor.OutputChunk](nil).AsAny(),
	reflect.TypeFor[*lessor.Asking]():       rapid.Just[*lessor.Asking](nil).AsAny(),
	reflect.TypeFor[*lessor.BackoffAsk]():   rapid.Just[*lessor.BackoffAsk](nil).AsAny(),
}}

// TestUnusualBodiesAreLeftToTheGeneralDecoder lists what the fast decoder must not decide.
func TestUnusualBodiesAreLeftToTheGeneralDecoder(t *testing.T) {
	for _, b := range []string{
		``, `null`, `[]`, `{}`, `{"type":null}`, `{"type":"a","type":"b"}`,
		`{"priority":null,"type":"a","priority":null}`,
		`{"type":"a","payload":{"x":{"y":1,"y":1}}}`, `{"type":"a","payload":[{"y":1,"y":1}]}`, `{"type":"a\u0000"}`,
		`{"Type":"a"}`, `{"type":"a","nope":1}`, `{"type":"a","max_attempts":1.0}`, `{"type":"a","max_attempts":01}`,
		"{\"type\":\"\xff\"}", "{\"type\":\"a\",\"payload\":\"\xff\"}", "{\"type\":\"a\",\"payload\":\"\\n\xff\"}",
		`{"type":"a","tags":["x",null]}`, `{"type":"a"} x`, `{"type":"a",}`, "\ufeff{\"type\":\"a\"}",
		`{"type":"a","payload":{"x":1e}}`, `{"type":"a","payload":"\x"}`, `{"type":"a","payload":-}`,
	} {
		if agreeOn[lessor.Submission](t, []byte(b)) {
			t.Errorf("%s is decided without the general decoder", b)
		}
	}
}
