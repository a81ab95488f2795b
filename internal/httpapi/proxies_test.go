package httpapi

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"testing"
)

func TestOnlyTrustedProxiesAreBelieved(t *testing.T) {
	p := proxies{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.0.0.0/8")}
	for _, tt := range []struct {
		name, peer string
		header     http.Header
		tls        bool
		client     string
		secure     bool
	}{
		{name: "no proxy", peer: "192.0.2.7:1", client: "192.0.2.7"},
		{name: "TLS of our own", peer: "192.0.2.7:1", tls: true, client: "192.0.2.7", secure: true},
		{
			name: "stranger who says so", peer: "192.0.2.7:1", client: "192.0.2.7",
			header: http.Header{"X-Forwarded-For": {"1.1.1.1"}, "X-Forwarded-Proto": {"https"}},
		},
		{
			name: "proxy", peer: "127.0.0.1:1", client: "192.0.2.7", secure: true,
			header: http.Header{"X-Forwarded-For": {"192.0.2.7"}, "X-Forwarded-Proto": {"https"}},
		},
		{name: "proxy that says nothing", peer: "127.0.0.1:1", client: "127.0.0.1"},
		{
			name: "proxy over plain HTTP", peer: "127.0.0.1:1", client: "2001:db8::1",
			header: http.Header{"X-Forwarded-For": {"2001:db8::1"}, "X-Forwarded-Proto": {"http"}},
		},
		{
			name: "caller lies before the proxy", peer: "127.0.0.1:1", client: "192.0.2.7",
			header: http.Header{"X-Forwarded-For": {"1.1.1.1, 192.0.2.7"}, "X-Forwarded-Proto": {"https, http"}},
		},
		{
			name: "two proxies, two headers", peer: "[::ffff:127.0.0.1]:1", client: "192.0.2.7", secure: true,
			header: http.Header{
				"X-Forwarded-For":   {"1.1.1.1", "192.0.2.7,10.9.9.9"},
				"X-Forwarded-Proto": {"http", "HTTPS"},
			},
		},
		{
			name: "nonsense behind a proxy", peer: "127.0.0.1:1", client: "10.9.9.9",
			header: http.Header{"X-Forwarded-For": {"192.0.2.7, unknown, 10.9.9.9"}},
		},
	} {
		r := request("GET", "/", "")
		r.RemoteAddr = tt.peer
		if tt.header != nil {
			r.Header = tt.header
		}
		if tt.tls {
			r.TLS = &tls.ConnectionState{}
		}
		if got := p.client(r).String(); got != tt.client {
			t.Errorf("%s: comes from %s, want %s", tt.name, got, tt.client)
		}
		if got := p.secure(r); got != tt.secure {
			t.Errorf("%s: secure %v, want %v", tt.name, got, tt.secure)
		}
	}
	r := request("GET", "/", "")
	r.RemoteAddr = "pipe"
	r.Header.Set("X-Forwarded-For", "1.1.1.1")
	if got := p.client(r); got.IsValid() {
		t.Errorf("a pipe comes from %s", got)
	}
}
