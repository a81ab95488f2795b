package httpapi

import (
	stdjson "encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"lessor"
)

func TestDecodeNamesTheField(t *testing.T) {
	bad, wrong := lessor.CodeInvalidRequest, lessor.CodeInvalidValue
	deep := strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)
	for _, tt := range []struct {
		name, body string
		code       lessor.Code // "" = accepted
		field      string
	}{
		{"least", `{"type":"a"}`, "", ""},
		{"space around", " \n{\"type\":\"a\"}\t\r\n", "", ""},
		{
			"all nulls are absent",
			`{"type":"a","payload":null,"tags":null,"priority":null,"backoff":null,"unique":null}`,
			"", "",
		},
		{"empty", "", bad, "type"},
		{"null", "null", bad, "type"},
		{"no fields", "{}", bad, "type"},
		{"required null", `{"type":null}`, bad, "type"},
		{"array", "[]", bad, "body"},
		{"string", `"type"`, bad, "body"},
		{"number", "1", bad, "body"},
		{"cut", `{"type":"a"`, bad, "body"},
		{"trailing", `{"type":"a"} x`, bad, "body"},
		{"two documents", `{"type":"a"}{"type":"b"}`, bad, "body"},
		{"trailing comma", `{"type":"a",}`, bad, "body"},
		{"comment", `{"type":"a"/**/}`, bad, "body"},
		{"single quotes", `{'type':'a'}`, bad, "body"},
		{"bom", "\ufeff{\"type\":\"a\"}", bad, "body"},
		{"utf-16", "{\x00\"\x00t\x00", bad, "body"},
		{"invalid utf-8", "{\"type\":\"\xff\"}", bad, "body"},
		{"invalid utf-8 in payload", "{\"type\":\"a\",\"payload\":{\"x\":\"\xc3\x28\"}}", bad, "body"},
		{"control character", "{\"type\":\"a\nb\"}", bad, "body"},
		{"NaN", `{"type":"a","max_attempts":NaN}`, bad, "body"},
		{"unknown", `{"type":"a","nope":1}`, bad, "nope"},
		{"other case", `{"Type":"a"}`, bad, "Type"},
		{"unknown inside", `{"type":"a","backoff":{"first":1}}`, bad, "backoff.first"},
		{"twice", `{"type":"a","type":"b"}`, bad, "type"},
		{"twice by escape", `{"type":"a","typ\u0065":"b"}`, bad, "type"},
		{"twice in payload", `{"type":"a","payload":{"x":{"y":1,"y":2}}}`, bad, "payload.x.y"},
		{"number for string", `{"type":1}`, bad, "type"},
		{"string for number", `{"type":"a","max_attempts":"1"}`, bad, "max_attempts"},
		{"number for boolean", `{"type":"a","unique":1}`, bad, "unique"},
		{"string for list", `{"type":"a","tags":"x"}`, bad, "tags"},
		{"list for object", `{"type":"a","backoff":[]}`, bad, "backoff"},
		{"number in list", `{"type":"a","tags":["x",2]}`, bad, "tags[1]"},
		{"null in list", `{"type":"a","tags":["x",null]}`, bad, "tags[1]"},
		{"fraction", `{"type":"a","max_attempts":1.5}`, wrong, "max_attempts"},
		{"exponent", `{"type":"a","max_attempts":1e0}`, wrong, "max_attempts"},
		{"beyond 64 bits", `{"type":"a","max_attempts":9223372036854775808}`, wrong, "max_attempts"},
		{"largest", `{"type":"a","max_attempts":9223372036854775807}`, "", ""},
		{"NUL", `{"type":"a\u0000"}`, wrong, "type"},
		{"NUL in list", `{"type":"a","tags":["x\u0000"]}`, wrong, "tags[0]"},
		{"lone surrogate", `{"type":"\ud800"}`, wrong, "type"},
		{"surrogate pair", `{"type":"\ud83d\ude00"}`, "", ""},
		{"payload as sent", `{"type":"a","payload":{"nul":"\u0000","half":"\ud800","n":1e400000}}`, "", ""},
		{"deep", `{"type":"a","payload":` + deep[1:len(deep)-1] + `}`, "", ""},
		{"too deep", `{"type":"a","payload":` + deep + `}`, bad, "body"},
		{"brackets in text", `{"type":"` + strings.Repeat(`[\"{`, 2*maxDepth) + `"}`, "", ""},
		{"long name", `{"` + strings.Repeat("n", 5000) + `":1}`, bad, strings.Repeat("n", maxFieldName) + "…"},
	} {
		var v lessor.Submission
		err := decode([]byte(tt.body), &v)
		if tt.code == "" {
			if err != nil {
				t.Errorf("%s: %v, want it accepted", tt.name, err)
			}
			continue
		}
		var e *lessor.Error
		if !errors.As(err, &e) || e.Code != tt.code || len(e.Fields) != 1 || e.Fields[0].Field != tt.field {
			t.Errorf("%s: got %v, want %s for %s", tt.name, err, tt.code, tt.field)
		}
	}
}

func TestDecodeNamesFieldsInsideLists(t *testing.T) {
	for _, tt := range []struct{ body, field string }{
		{`{"jobs":[{"type":"a"},{"priority":"low"}]}`, "jobs[1].type"},
		{`{"jobs":[{"type":"a"},null]}`, "jobs[1].type"},
		{`{"jobs":[{"type":"a"},{"type":"b"},{"type":"c"},{"type":"d","priority":7}]}`, "jobs[3].priority"},
		{`{"jobs":[{"type":"a","nope":7}]}`, "jobs[0].nope"},
		{`{"jobs":[{"type":"a","backoff":{"first_ms":"x"}}]}`, "jobs[0].backoff.first_ms"},
		{`{}`, "jobs"},
	} {
		var v jobBatch
		var e *lessor.Error
		if err := decode([]byte(tt.body), &v); !errors.As(err, &e) || len(e.Fields) != 1 ||
			e.Fields[0].Field != tt.field {
			t.Errorf("%s: %v, want it to name %s", tt.body, err, tt.field)
		}
	}
	var many jobBatch
	err := decode([]byte(`{"jobs":[`+strings.Repeat("{},", 99)+`{}]}`), &many)
	var e *lessor.Error
	if !errors.As(err, &e) || len(e.Fields) != mostMissing {
		t.Errorf("100 missing fields are answered with %v, want %d of them", err, mostMissing)
	}
}

func TestCapacityTellsNullFromAbsent(t *testing.T) {
	for _, tt := range []struct {
		body                 string
		total, busy          int64 // 0 = nil
		resetTotal, resetBus bool
	}{
		{`{}`, 0, 0, false, false},
		{``, 0, 0, false, false},
		{`{"total_units":null}`, 0, 0, true, false},
		{`{"total_units":7,"busy":null}`, 7, 0, false, true},
		{`{"busy":3,"expires_in_s":null}`, 0, 3, false, false},
	} {
		var v lessor.CapacityAsk
		if err := decode([]byte(tt.body), &v); err != nil {
			t.Errorf("%s: %v", tt.body, err)
			continue
		}
		value := func(p *int64) int64 {
			if p == nil {
				return 0
			}
			return *p
		}
		if value(v.TotalUnits.To) != tt.total || value(v.Busy.To) != tt.busy ||
			v.TotalUnits.Reset != tt.resetTotal || v.Busy.Reset != tt.resetBus {
			t.Errorf("%s: %+v", tt.body, v)
		}
	}
	var e *lessor.Error
	if err := decode([]byte(`{"busy":1.5}`), new(lessor.CapacityAsk)); !errors.As(err, &e) ||
		e.Code != lessor.CodeInvalidValue || e.Fields[0].Field != "busy" {
		t.Errorf("half a rating: %v", err)
	}
	if err := decode([]byte(`{"busy":"3"}`), new(lessor.CapacityAsk)); !errors.As(err, &e) ||
		e.Code != lessor.CodeInvalidRequest || e.Fields[0].Field != "busy" {
		t.Errorf("a rating as text: %v", err)
	}
}

func TestPayloadsComeBackAsSent(t *testing.T) {
	s := start(t)
	const payload = `{"n":1e400000,"zero":-0.0,"long":12345678901234567890123.4500,"half":"\ud800","nul":"\u0000","slash":"\/<&>","é":"\u00e9"}`
	id := s.api("POST", "/jobs", `{"type":"x","payload":`+payload+`}`, 201)["job_id"].(string)
	if w := s.call("GET", scheduling+"/jobs/"+id, ""); !strings.Contains(w.Body.String(), payload) {
		t.Errorf("sent %s\ngot %s", payload, w.Body)
	}
	if w := s.call("POST", scheduling+"/leases/request", `{"worker_id":"w"}`); !strings.Contains(w.Body.String(),
		payload) {
		t.Errorf("sent %s\ngranted %s", payload, w.Body)
	}
}

func TestBodyLimitIsExact(t *testing.T) {
	s := start(t)
	body := func(size int) string {
		const envelope = `{"type":"x","payload":{"a":""}}`
		return strings.Replace(envelope, `""`, `"`+strings.Repeat("x", size-len(envelope))+`"`, 1)
	}
	if w := s.call("POST", scheduling+"/jobs", body(defaultPayloadLimit)); w.Code != http.StatusCreated {
		t.Errorf("a body of the limit: %d %s", w.Code, shorten(w.Body.String(), 200))
	}
	refused(t, s.call("POST", scheduling+"/jobs", body(defaultPayloadLimit+1)), 413, lessor.CodePayloadTooLarge)
}

func TestBodiesAreJSONWhateverTheyAreCalled(t *testing.T) {
	s := start(t)
	for _, name := range []string{
		"", "application/json", "text/plain", "application/x-www-form-urlencoded",
		"nonsense",
	} {
		if w := s.call("POST", scheduling+"/jobs", `{"type":"x"}`,
			header("Content-Type", name)); w.Code != http.StatusCreated {
			t.Errorf("Content-Type %q: %d %s", name, w.Code, w.Body)
		}
	}
}

// Whatever is sent, it is decoded or refused, never a fault; and what was accepted can be answered and read again.
func FuzzDecode(f *testing.F) {
	for _, rows := range [][]bad{badSyntax(), badFields(), badValues()} {
		for _, row := range rows {
			if len(row.body) < 2000 {
				f.Add([]byte(row.body))
			}
		}
	}
	f.Add([]byte(`{"type":"x","payload":{"n":1e400000,"half":"\ud800"},"tags":["a"],"backoff":{"first_ms":1}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, v := range []any{new(lessor.Submission), new(jobBatch), new(lessor.Completion), new(lessor.CapacityAsk)} {
			err := decode(b, v)
			if code := lessor.CodeOf(err); err != nil && code != lessor.CodeInvalidRequest &&
				code != lessor.CodeInvalidValue {
				t.Errorf("%T: %v", v, err)
			}
			if sub, ok := v.(*lessor.Submission); ok && err == nil {
				answer, err := json.Marshal(lessor.Job{Type: *sub.Type, Tags: sub.Tags, Payload: sub.Payload}, encoding)
				if err != nil || !stdjson.Valid(answer) {
					t.Errorf("cannot be answered: %v %s", err, answer)
				}
			}
		}
	})
}
