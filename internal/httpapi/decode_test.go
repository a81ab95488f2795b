package httpapi

import (
	stdjson "encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		{"other case", `{"type":"a","Type":"a"}`, bad, "Type"},
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
		{"whole with fraction", `{"type":"a","max_attempts":300.0}`, "", ""},
		{"whole with exponent", `{"type":"a","max_attempts":3e2}`, "", ""},
		{"largest with fraction", `{"type":"a","max_attempts":9007199254740992.0}`, "", ""},
		{"too large with fraction", `{"type":"a","max_attempts":9007199254740994.0}`, wrong, "max_attempts"},
		{"exponent beyond 64 bits", `{"type":"a","max_attempts":1e400}`, wrong, "max_attempts"},
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
		{
			"long name", `{"type":"a","` + strings.Repeat("n", 5000) + `":1}`, bad,
			strings.Repeat("n", maxFieldName) + "…",
		},
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
		{`{"jobs":[{"type":"a"},null]}`, "jobs[1]"},
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
}

func TestOutputThatIsNotBase64IsRefused(t *testing.T) {
	for _, data := range []string{`"no base64"`, `"aGk"`, `"aG\nk="`, `"a\u0000"`, `"\ud800"`} {
		var v lessor.OutputReport
		err := decode([]byte(`{"worker_id":"w","chunks":[{"stream":"stdout","offset":0,"data":`+data+`}]}`), &v)
		var e *lessor.Error
		if !errors.As(err, &e) || e.Code != lessor.CodeInvalidValue || e.Fields[0].Field != "chunks[0].data" {
			t.Errorf("%s: %v, want a refusal that names chunks[0].data", data, err)
		}
	}
}

func TestDecodeNamesEveryFieldAndTheTypeItWants(t *testing.T) {
	const body = `{"jobs":[{"type":7,"tags":["x",{}],"nope":1,"nope":2},{"type":"a","unique":"yes","max_attempts":"5"},
		"text",{"priority":"low","backoff":[],"requested_units":1.5},{"type":"a\u0000","type":"b"},
		{"type":"a","payload":{"x":[{"y":1,"y":2}]},"max_attempts":30.0}],"job":[]}`
	want := []lessor.FieldError{
		{Field: "jobs[0].type", Message: "must be a string, not a number"},
		{Field: "jobs[0].tags[1]", Message: "must be a string, not an object"},
		{Field: "jobs[0].nope", Message: "is not a field of this request"},
		{Field: "jobs[0].nope", Message: "is not a field of this request"},
		{Field: "jobs[1].unique", Message: "must be a boolean, not a string"},
		{Field: "jobs[1].max_attempts", Message: "must be a whole number, not a string"},
		{Field: "jobs[2]", Message: "must be an object, not a string"},
		{Field: "jobs[3].backoff", Message: "must be an object, not an array"},
		{Field: "jobs[3].requested_units", Message: "must be a whole number, not 1.5"},
		{Field: "jobs[3].type", Message: "is required"},
		{Field: "jobs[4].type", Message: "must not contain NUL characters"},
		{Field: "jobs[4].type", Message: "is there twice"},
		{Field: "jobs[5].payload.x[0].y", Message: "is there twice"},
		{Field: "job", Message: "is not a field of this request"},
	}
	e, _ := errors.AsType[*lessor.Error](decode([]byte(body), new(jobBatch)))
	if e == nil || e.Code != lessor.CodeInvalidRequest {
		t.Fatalf("got %v, want invalid_request", e)
	}
	if diff := cmp.Diff(want, e.Fields); diff != "" {
		t.Errorf("the fields named (-want +got):\n%s", diff)
	}
	many := `{"jobs":[` + strings.Repeat("{},", 999) + `{}]}`
	if e, _ := errors.AsType[*lessor.Error](decode([]byte(many), new(jobBatch))); e == nil || len(e.Fields) != 100 {
		t.Errorf("1000 missing fields are answered with %v, want 100 of them", e)
	}
}

// The inspector knows every type of every body.
func TestBodiesAreOfTypesThatCanBeInspected(t *testing.T) {
	var check func(typ reflect.Type, at string)
	check = func(typ reflect.Type, at string) {
		switch typ = plainType(typ); {
		case typ == reflect.TypeFor[stdjson.RawMessage](), typ == reflect.TypeFor[[]byte]():
		case typ.Kind() == reflect.Slice:
			check(typ.Elem(), at+"[]")
		case typ.Kind() == reflect.Struct:
			for _, f := range fieldsOf(typ) {
				if f.embedded {
					t.Errorf("%s: fields of embedded structs are not inspected", at)
				}
				check(f.typ, at+"."+f.name)
			}
		default:
			if name, _ := wanted(typ); name == "an object" {
				t.Errorf("%s is a %v, which is not inspected", at, typ)
			}
		}
	}
	for _, r := range routes(defaultPayloadLimit) {
		if r.handle.in != nil {
			check(r.handle.in, r.method+" "+r.path)
		}
	}
}

func TestCapacityDistinguishesNullFromAbsent(t *testing.T) {
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
	const payload = `{"n":1e400000,"zero":-0.0,"long":12345678901234567890123.4500,` +
		`"half":"\ud800","nul":"\u0000","slash":"\/<&>","é":"\u00e9"}`
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
