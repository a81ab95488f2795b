package httpapi

import (
	stdjson "encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/token"
)

// bodyTypes returns the types of all bodies, each once.
func bodyTypes() (types []reflect.Type) {
	for _, rt := range routes(defaultPayloadLimit) {
		if rt.handle.in != nil && !slices.Contains(types, rt.handle.in) {
			types = append(types, rt.handle.in)
		}
	}
	return types
}

// FuzzDecode reads a body of any route. It is decoded, and then the general decoder and the slow inspector read the
// same, and it can be written; or it is refused with fields that a caller can read.
func FuzzDecode(f *testing.F) {
	types := bodyTypes()
	for i := range types {
		f.Add(uint8(i), []byte(`{}`))
	}
	for _, rows := range [][]bad{badSyntax(), badFields(), badValues()} {
		for i, row := range rows {
			if len(row.body) < 2000 {
				f.Add(uint8(i), []byte(row.body))
			}
		}
	}
	f.Add(uint8(0), []byte(`{"type":"x","payload":{"n":1e400000,"half":"\ud800"},`+
		`"tags":["a"],"backoff":{"first_ms":1}}`))
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		in := types[int(which)%len(types)]
		v := reflect.New(in)
		if err := decode(b, v.Interface()); err != nil {
			readable(t, err)
			return
		}
		general := reflect.New(in)
		if err := decodeAny(b, general.Interface()); err != nil {
			t.Fatalf("%s is read without reflection, and refused with it: %v", b, err)
		}
		if diff := cmp.Diff(general.Interface(), v.Interface(), cmp.Exporter(always)); diff != "" {
			t.Fatalf("%s is read otherwise (-general decoder +hot decoder):\n%s", b, diff)
		}
		if body := strings.TrimSpace(string(b)); body == "" || body == "null" {
			return
		}
		slow := reflect.New(in)
		if err := refusalOf(b, slow.Interface(), nil); lessor.CodeOf(err) == lessor.CodeInvalidRequest {
			t.Fatalf("%s is decoded, and inspected it is refused: %v", b, err)
		}
		if diff := cmp.Diff(v.Interface(), slow.Interface(), resets); diff != "" {
			t.Fatalf("%s is read otherwise (-decoder +inspector):\n%s", b, diff)
		}
		written, err := json.Marshal(v.Interface(), encoding)
		if err != nil || !stdjson.Valid(written) {
			t.Fatalf("%s cannot be written: %v %s", b, err, written)
		}
	})
}

func always(reflect.Type) bool { return true }

// resets makes null equal to absent for settings: the inspector does not tell them apart, and nobody reads them there.
var resets = cmp.Options{
	cmp.Exporter(always),
	cmp.Transformer("reset", func(c lessor.Change[int64]) *int64 { return c.To }),
	cmp.Transformer("reset", func(c lessor.Change[bool]) *bool { return c.To }),
	cmp.Transformer("reset", func(c lessor.Change[string]) *string { return c.To }),
}

// readable fails unless a refusal says what is wrong, briefly and in valid characters.
func readable(t *testing.T, err error) {
	t.Helper()
	code := lessor.CodeOf(err)
	refusal, ok := err.(*lessor.Error) //nolint:errorlint // decode returns it as it is
	if !ok || code != lessor.CodeInvalidRequest && code != lessor.CodeInvalidValue || len(refusal.Fields) == 0 ||
		len(refusal.Fields) > rules.MaxFaults {
		t.Fatalf("refused with %v", err)
	}
	for _, f := range refusal.Fields {
		if !utf8.ValidString(f.Field+f.Message) || len(f.Field) > 2*maxFieldName || len(f.Message) > 500 {
			t.Errorf("the field %q is refused with %q", f.Field, f.Message)
		}
	}
}

// FuzzHeaders reads the headers that decide something: who calls, from where, which version is changed, where a stream
// goes on, and to which trace a call belongs.
func FuzzHeaders(f *testing.F) {
	const secret = "lsr_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	ids := newEventIDs().of(scheduler.Caller{Actor: "a"})
	for _, seed := range []string{
		"Bearer " + secret, "bearer  " + secret + " ", "Bearer lsr_B", "Basic " + secret, "Bearer " + secret + "x",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", "00-0-b7ad6b7169203331-01",
		ids.seal(7), strings.ToUpper(ids.seal(7)), "7", "10.0.0.1, 192.0.2.7", "192.0.2.7,, 10.0.0.2",
		"::ffff:10.0.0.1",
		`"v1"`, `W/"v1"`, `"v0", "v1"`, `*`, `"v1`, `""`,
	} {
		f.Add(seed)
	}
	book := token.NewBook(nil)
	book.Put(scheduler.Token{Hash: token.Hash(secret), Role: string(token.Viewer)})
	f.Fuzz(func(t *testing.T, value string) {
		h := http.Header{"Authorization": {value}, "Traceparent": {value}, "X-Forwarded-For": {value}}
		if _, ok := book.Find(bearer(h), 0); ok != (len(value) > 7 && strings.EqualFold(value[:7], "bearer ") &&
			strings.TrimSpace(value[7:]) == secret) {
			t.Errorf("Authorization %q: accepted %v", value, ok)
		}
		tr := continueTrace(h)
		id, _, ok := parseTraceparent(tr.parent())
		if !ok || id != tr.id || tr.given != "" && !strings.Contains(value, tr.id) {
			t.Errorf("Traceparent %q is answered with %q", value, tr.parent())
		}
		place := ids.open(value)
		if value != "" && place != scheduler.AfterUnknown && ids.seal(place) != strings.ToLower(value) {
			t.Errorf("Last-Event-ID %q is place %d", value, place)
		}
		r := &http.Request{RemoteAddr: "10.0.0.9:1", Header: h}
		trusted := proxies{netip.MustParsePrefix("10.0.0.0/8")}
		from := trusted.client(r)
		if !from.IsValid() || from.Is4() && from.String() != "10.0.0.9" && !strings.Contains(value, ":") &&
			!strings.Contains(value, from.String()) {
			t.Errorf("X-Forwarded-For %q is from %v", value, from)
		}
		if from := proxies(nil).client(r); from.String() != "10.0.0.9" {
			t.Errorf("X-Forwarded-For %q of a stranger is from %v", value, from)
		}
		if rules.Match(value, "v1") == nil && value != "" && !strings.Contains(value, "v1") &&
			!strings.Contains(value, "*") {
			t.Errorf("If-Match %q allows the version v1", value)
		}
	})
}

// FuzzQuery reads a query with every parameter that there is. A parameter is refused with a code or lies within its
// bounds, and any cursor is a place in a list.
func FuzzQuery(f *testing.F) {
	for _, seed := range []string{
		"limit=1&cursor=Yg", "limit=1001", "limit=+5", "state=queued&tenant_id=" + tenantA, "tenant_id=" + tenantB,
		"from=2026-02-06T20:10:00Z",
		"limit=1&limit=2", "a;b=%zz", "cursor=%00", "wait_ms=9223372036854775808", "tag=&type=x", "cursor=Yw==",
	} {
		f.Add(seed)
	}
	rt := &route{
		query:  []string{"state", "type", "tenant_id", "tag", "limit", "cursor", "from", "wait_ms"},
		handle: plain(func(*call) error { return nil }),
	}
	tenant, err := lessor.ParseUUID(tenantA)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		c := &call{route: rt, r: &http.Request{URL: &url.URL{RawQuery: raw}}}
		c.caller.Tenant = &lessor.TenantID{UUID: tenant}
		err := c.readQuery()
		if err != nil {
			readable(t, err)
			return
		}
		if filter, err := c.jobFilter(); err == nil && (filter.Limit < 1 || filter.Limit > maxLimit ||
			filter.Tenant != nil && filter.Tenant.UUID != tenant || !isText(filter.Type+filter.Tag+filter.Cursor)) {
			t.Errorf("%q is the filter %+v", raw, filter)
		} else if err != nil && lessor.CodeOf(err) != lessor.CodeForbidden {
			readable(t, err)
		}
		if at := c.instantNamed("from"); c.query.Get("from") != "" {
			if again, err := instant("from", at.String()); err != nil || again != at {
				t.Errorf("%q is %v, and that is %v (%v)", raw, at, again, err)
			}
		}
		page, next, err := pageOf([]string{"c", "a", "b"}, func(s string) string { return s }, 1, c.query.Get("cursor"))
		if err != nil {
			readable(t, err)
		} else if len(page) > 1 || (next == nil) != (len(page) == 0 || page[0] == "c") {
			t.Errorf("%q shows the page %v, and there is more: %v", raw, page, next != nil)
		}
	})
}
