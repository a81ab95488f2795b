package alert

import (
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
)

func TestOnlyPublicAddressesAreDialled(t *testing.T) {
	for _, c := range []struct {
		want  bool
		addrs []string
	}{
		{true, []string{
			"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
			"172.15.255.255",
			"172.32.0.0", "192.167.255.255", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700::1111",
			"2a00:1450::1",
		}},
		{false, []string{
			"0.0.0.0", "0.1.2.3", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1",
			"127.255.255.255",
			"169.254.169.254", "172.16.0.0", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.168.0.1", "198.18.0.1",
			"198.19.255.255",
			"198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
			"::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:7f00:1", "64:ff9b::7f00:1",
			"64:ff9b:1::a00:1", "100::1",
			"2001::1", "2001:db8::1", "2002:7f00:1::", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1",
			"ff02::1",
			"2606:4700::1111%eth0",
		}},
	} {
		for _, a := range c.addrs {
			if got := public(netip.MustParseAddr(a)); got != c.want {
				t.Errorf("%s is public = %t, want %t", a, got, c.want)
			}
		}
	}
}

// TestPrivateAddressesAreNeverReached uses every name of this machine. The listener must not see a connection.
func TestPrivateAddressesAreNeverReached(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var seen atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			seen.Add(1)
			conn.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::1]", "0.0.0.0", "[::]",
	} {
		s, err := New(Config{Webhook: "https://" + host + ":" + port, AllowHosts: []string{"other.test"}})
		if err != nil {
			t.Fatal(err)
		}
		if r := s.attempt(t.Context(), &delivery{}); !errors.Is(r.err, errNotPublic) || r.again {
			t.Errorf("%s: got %v (again = %t), want %v", host, r.err, r.again, errNotPublic)
		}
	}
	listener.Close()
	<-done
	if seen.Load() != 0 {
		t.Errorf("%d connections were made", seen.Load())
	}
}

// tlsSender returns a sender that trusts a server on this machine.
func tlsSender(t *testing.T, server *httptest.Server, secret string) *Sender {
	t.Helper()
	s, err := New(Config{Webhook: server.URL + "/in", Secret: secret, AllowHosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	trusted, _ := server.Client().Transport.(*http.Transport)
	transport, _ := s.client.Transport.(*http.Transport)
	transport.TLSClientConfig = trusted.TLSClientConfig
	return s
}

func TestAllowedHostIsReachedOverTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
	}))
	defer server.Close()
	s := tlsSender(t, server, "key")
	if r := s.attempt(t.Context(), &delivery{body: []byte("{}")}); r.err != nil {
		t.Errorf("not delivered: %v", r.err)
	}
	transport, _ := s.client.Transport.(*http.Transport)
	if transport.Proxy != nil { // the test cannot use a proxy: those of the environment never apply to this machine
		t.Error("a proxy may be used instead of the address that was checked")
	}
	transport.TLSClientConfig = nil
	r := s.attempt(t.Context(), &delivery{body: []byte("{}")})
	if _, ok := errors.AsType[x509.UnknownAuthorityError](r.err); !ok {
		t.Errorf("an unknown certificate was accepted: %v", r.err)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var followed atomic.Bool
	mux := http.NewServeMux()
	mux.Handle("POST /in", http.RedirectHandler("/out", http.StatusTemporaryRedirect))
	mux.HandleFunc("/out", func(http.ResponseWriter, *http.Request) { followed.Store(true) })
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	r := tlsSender(t, server, "").attempt(t.Context(), &delivery{body: []byte("{}")})
	if r.err == nil || r.again || followed.Load() {
		t.Errorf("got %v (again = %t), followed = %t", r.err, r.again, followed.Load())
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		webhook string
		allow   []string
		ok      bool
	}{
		{"https://hooks.example.org/x", nil, true},
		{"http://hooks.example.org/x", nil, false},
		{"http://hooks.example.org/x", []string{"example.org"}, false},
		{"http://Hooks.example.org:8080/x", []string{"hooks.EXAMPLE.org"}, true},
		{"http://[::1]:80/x", []string{"::1"}, true},
		{"ftp://hooks.example.org/x", []string{"hooks.example.org"}, false},
		{"https:///x", nil, false},
		{"https://", nil, false},
		{"hooks.example.org", nil, false},
		{"", nil, false},
		{"https://a b", nil, false},
	} {
		if _, err := New(Config{Webhook: c.webhook, AllowHosts: c.allow}); (err == nil) != c.ok {
			t.Errorf("%q with %v: %v", c.webhook, c.allow, err)
		}
	}
}

func TestErrorsDoNotContainTheAddress(t *testing.T) {
	s, err := New(Config{Webhook: "https://127.0.0.1:1/hidden", AllowHosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	if r := s.attempt(t.Context(), &delivery{}); r.err == nil || !r.again || strings.Contains(r.err.Error(), "hidden") {
		t.Errorf("got %v (again = %t)", r.err, r.again)
	}
}
