package httpapi

import (
	"cmp"
	stdjson "encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"lessor"
)

// TestAppendersWriteWhatTheEncoderWrites compares the encoders of hot answers with the one for all types, over random
// values of every field.
func TestAppendersWriteWhatTheEncoderWrites(t *testing.T) {
	raw := rapid.OneOf(rapid.Just[stdjson.RawMessage](nil), rapid.Map(rapid.SampledFrom([]string{
		`{}`, `null`, `{"a": [1, 2e3,  "x \" y\\"], "b":{ } }`, "\n[\t1 ,\r\n2 ]", `" <&> \u0041 é "`, `{"a":"\\"} `,
	}), func(s string) stdjson.RawMessage { return stdjson.RawMessage(s) }))
	text := rapid.OneOf(
		rapid.String(),
		rapid.SampledFrom([]string{"", "plain", "\"\\\n\x00\x1f\x7f", "é\xff<>&\u2028"}),
	)
	job := rapid.MakeCustom[lessor.Job](fields(raw, text, -1e14, 1e15))
	lease := rapid.MakeCustom[lessor.Lease](fields(raw, text, -1e14, 1e15))
	beat := rapid.MakeCustom[lessor.HeartbeatAnswer](fields(raw, text, -1e14, 1e15))
	rapid.Check(t, func(t *rapid.T) {
		grants := make([]lessor.Grant, rapid.IntRange(0, 3).Draw(t, "grants"))
		jobs := []lessor.Job{}
		for i := range grants {
			grants[i] = lessor.Grant{Lease: lease.Draw(t, "lease"), Job: job.Draw(t, "job")}
			jobs = append(jobs, grants[i].Job)
		}
		id, why := text.Draw(t, "id"), text.Draw(t, "why")
		refused := result[leaseExtended]{refused: &leaseRefused{LeaseID: id, Status: 404, Code: "lease_not_found"}}
		explained := result[leaseEnded]{refused: &leaseRefused{LeaseID: id, EndedReason: &why}}
		for _, v := range []any{
			job.Draw(t, "job"), beat.Draw(t, "beat"),
			lessor.JournalAnswer{HeartbeatAnswer: beat.Draw(t, "beat"), Numbers: []int{1, 23}},
			grantedAll{Grants: grants},
			submitted{jobs},
			submittedIDs{[]lessor.JobID{}},
			submittedIDs{[]lessor.JobID{job.Draw(t, "job").ID, job.Draw(t, "job").ID}},
			done{true},
			granted{Lease: lease.Draw(t, "lease"), Job: job.Draw(t, "job")},
			results[leaseExtended]{[]result[leaseExtended]{{ok: &leaseExtended{id, beat.Draw(t, "beat")}}, refused}},
			results[leaseEnded]{[]result[leaseEnded]{{ok: &leaseEnded{id, true}}, explained}},
			denied{Denied: true, Code: "no_capacity", Reason: why, RetryAfterMS: 5},
			turned{Heartbeat: []result[leaseExtended]{refused}, Complete: []result[leaseEnded]{explained}},
			turned{Request: turnGrants{grantedAll{Grants: grants}}},
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

// TestWorkViewLosesNothing reads what the work view writes, fills in the defaults of docs/http-workers.md, and has the
// grant again.
func TestWorkViewLosesNothing(t *testing.T) {
	raw := rapid.SampledFrom([]stdjson.RawMessage{[]byte(`{}`), []byte(`null`), []byte(`{"a":[1]}`)})
	text := rapid.SampledFrom([]string{"", "default", "x"})
	grant := rapid.MakeCustom[lessor.Grant](fields(raw, text, 0, 2e14))
	rapid.Check(t, func(t *rapid.T) {
		want := grant.Draw(t, "grant")
		j, l := &want.Job, &want.Lease
		j.Priority %= lessor.Priority(lessor.Priorities)
		j.LeaseID, j.UpdatedAt = nil, 0
		*l = lessor.Lease{
			ID: l.ID, IssuedAt: l.IssuedAt, ExpiresAt: l.ExpiresAt, Fence: l.Fence, TTLMS: l.TTLMS,
			HeartbeatAfterMS: l.HeartbeatAfterMS,
		}
		var answer grantedAll
		if err := stdjson.Unmarshal(workView([]lessor.Grant{want}).appendTo(nil), &answer); err != nil {
			t.Fatal(err)
		}
		got := answer.Grants[0]
		written := string(workView([]lessor.Grant{want}).appendTo(nil))
		got.Job.State = cmp.Or(got.Job.State, lessor.Leased)
		if !strings.Contains(written, `"requested_units"`) {
			got.Job.RequestedUnits = 1
		}
		if !strings.Contains(written, `"fairness_class"`) {
			got.Job.FairnessClass = "default"
		}
		j.State = cmp.Or(j.State, lessor.Leased)
		for _, v := range []*stdjson.RawMessage{&got.Job.Checkpoint, &got.Job.Result} {
			if *v == nil {
				*v = []byte("null")
			}
		}
		if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s is not the grant (-want +got):\n%s", written, diff)
		}
	})
}

// fields makes a generator of wire values: of any text, of raw JSON, and of instants within bounds.
func fields(
	raw *rapid.Generator[stdjson.RawMessage], text *rapid.Generator[string], first, last int64,
) rapid.MakeConfig {
	return rapid.MakeConfig{Types: map[reflect.Type]*rapid.Generator[any]{
		reflect.TypeFor[stdjson.RawMessage](): raw.AsAny(),
		reflect.TypeFor[string]():             text.AsAny(),
		reflect.TypeFor[lessor.Instant](): rapid.Custom(func(t *rapid.T) lessor.Instant {
			return lessor.Instant(rapid.OneOf(rapid.Just[int64](0), rapid.Int64Range(first, last)).Draw(t, "instant"))
		}).AsAny(),
	}}
}
