package httpapi

import (
	stdjson "encoding/json"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"lessor"
)

// TestAppendersWriteWhatTheEncoderWrites compares the encoders of hot answers with the one for all types, over random
// values of every field.
func TestAppendersWriteWhatTheEncoderWrites(t *testing.T) {
	raw := rapid.OneOf(rapid.Just[stdjson.RawMessage](nil), rapid.Map(rapid.SampledFrom([]string{
		`{}`, `null`, `{"a": [1, 2e3,  "x \" y\\"], "b":{ } }`, "\n[\t1 ,\r\n2 ]", `" <&> \u0041 é "`, `{"a":"\\"} `,
	}), func(s string) stdjson.RawMessage { return stdjson.RawMessage(s) }))
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "plain", "\"\\\n\x00\x1f\x7f", "é\xff<>&\u2028"}))
	job := rapid.MakeCustom[lessor.Job](fields(raw, text))
	lease := rapid.MakeCustom[lessor.Lease](fields(raw, text))
	beat := rapid.MakeCustom[lessor.HeartbeatAnswer](fields(raw, text))
	rapid.Check(t, func(t *rapid.T) {
		grants := make([]lessor.Grant, rapid.IntRange(0, 3).Draw(t, "grants"))
		jobs := []lessor.Job{}
		for i := range grants {
			grants[i] = lessor.Grant{Lease: lease.Draw(t, "lease"), Job: job.Draw(t, "job")}
			jobs = append(jobs, grants[i].Job)
		}
		id, why := text.Draw(t, "id"), text.Draw(t, "why")
		refused := result[leaseBeaten]{refused: &leaseRefused{LeaseID: id, Status: 404, Code: "lease_not_found"}}
		explained := result[leaseEnded]{refused: &leaseRefused{LeaseID: id, EndedReason: &why}}
		for _, v := range []any{
			job.Draw(t, "job"), beat.Draw(t, "beat"),
			grantedAll{Grants: grants},
			submitted{jobs},
			done{true},
			granted{Lease: lease.Draw(t, "lease"), Job: job.Draw(t, "job")},
			results[leaseBeaten]{[]result[leaseBeaten]{{ok: &leaseBeaten{id, beat.Draw(t, "beat")}}, refused}},
			results[leaseEnded]{[]result[leaseEnded]{{ok: &leaseEnded{id, true}}, explained}},
		} {
			want, err := json.Marshal(v, encoding)
			if err != nil {
				t.Fatal(err)
			}
			got, err := encode(nil, v)
			if err != nil || string(got) != string(want) {
				t.Fatalf("%T is written\n%s (error %v), want\n%s", v, got, err, want)
			}
		}
	})
}

// fields makes a generator of wire values: of any text, of raw JSON, and of instants within and beyond four-digit years.
func fields(raw *rapid.Generator[stdjson.RawMessage], text *rapid.Generator[string]) rapid.MakeConfig {
	return rapid.MakeConfig{Types: map[reflect.Type]*rapid.Generator[any]{
		reflect.TypeFor[stdjson.RawMessage](): raw.AsAny(),
		reflect.TypeFor[string]():             text.AsAny(),
		reflect.TypeFor[lessor.Instant](): rapid.Custom(func(t *rapid.T) lessor.Instant {
			return lessor.Instant(rapid.OneOf(rapid.Just[int64](0), rapid.Int64Range(-1e14, 1e15)).Draw(t, "instant"))
		}).AsAny(),
	}}
}
