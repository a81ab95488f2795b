package httpapi

import (
	"net/http"
	"testing"

	"lessor"
)

func TestHostHeaderMustBeOneOfOurs(t *testing.T) {
	for _, tt := range []struct {
		listen string
		extra  []string
		host   string
		want   bool
	}{
		{listen: "127.0.0.1:5377", host: "127.0.0.1:5377", want: true},
		{listen: "127.0.0.1:5377", host: "localhost:5377", want: true},
		{listen: "127.0.0.1:5377", host: "LOCALHOST", want: true},
		{listen: "127.0.0.1:5377", host: "localhost.:80", want: true},
		{listen: "127.0.0.1:5377", host: "127.8.9.1", want: true},
		{listen: "127.0.0.1:5377", host: "[::1]:5377", want: true},
		{listen: "127.0.0.1:5377", host: "[::1]", want: true},
		{listen: "127.0.0.1:5377", host: "evil.example", want: false},
		{listen: "127.0.0.1:5377", host: "localhost.evil.example", want: false},
		{listen: "127.0.0.1:5377", host: "127.0.0.1.evil.example", want: false},
		{listen: "127.0.0.1:5377", host: "10.0.0.1", want: false},
		{listen: "127.0.0.1:5377", host: "", want: false},
		{listen: "127.0.0.1:5377", host: ":5377", want: false},
		{listen: "127.0.0.1:5377", host: "127.1", want: false},
		{listen: "10.0.0.1:5377", host: "10.0.0.1:5377", want: true},
		{listen: "10.0.0.1:5377", host: "10.0.0.2:5377", want: false},
		{listen: "10.0.0.1:5377", host: "localhost", want: true},
		{listen: "lessor.example:80", host: "Lessor.Example", want: true},
		{listen: "lessor.example:80", host: "other.example", want: false},
		{listen: ":5377", host: "10.1.2.3:5377", want: true},
		{listen: ":5377", host: "[2001:db8::1]:5377", want: true},
		{listen: "0.0.0.0:5377", host: "10.1.2.3", want: true},
		{listen: "[::]:5377", host: "10.1.2.3", want: true},
		{listen: ":5377", host: "evil.example", want: false},
		{listen: ":5377", host: "", want: false},
		{listen: ":5377", extra: []string{"jobs.example"}, host: "jobs.example:443", want: true},
		{listen: ":5377", extra: []string{"jobs.example:443"}, host: "jobs.example", want: true},
		{listen: "127.0.0.1:1", extra: []string{"jobs.example"}, host: "jobs.example", want: true},
		{listen: "127.0.0.1:1", extra: []string{""}, host: "", want: false},
	} {
		if got := newHosts(tt.listen, tt.extra).accept(tt.host); got != tt.want {
			t.Errorf("listening on %s, known as %q: Host %q accepted %v, want %v", tt.listen, tt.extra, tt.host, got,
				tt.want)
		}
	}
}

func TestEveryRouteChecksHostAndOrigin(t *testing.T) {
	s := start(t)
	rebound := func(r *http.Request) { r.Host = "evil.example" }
	for _, rt := range routes(defaultPayloadLimit) {
		refused(t, s.call(rt.method, pathOf(rt), "", with(s.admin), rebound), 403, lessor.CodeForbidden)
		if rt.method == "GET" {
			continue // safe methods change nothing, and other origins cannot read their answers
		}
		refused(t, s.call(rt.method, pathOf(rt), "", with(s.admin), header("Sec-Fetch-Site", "cross-site")), 403,
			lessor.CodeForbidden)
		refused(t, s.call(rt.method, pathOf(rt), "", with(s.admin), header("Origin", "https://evil.example")), 403,
			lessor.CodeForbidden)
	}
	refused(t, s.call("GET", "/no/such/route", "", rebound), 403, lessor.CodeForbidden)
	if w := s.call("POST", scheduling+"/jobs", `{"type":"x"}`, header("Origin", "http://"+testListen)); w.Code != 201 {
		t.Errorf("a page of our own may submit: %d %s", w.Code, w.Body)
	}
}
