package alert

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// FuzzWebhook holds that a webhook is https, or a host that is allowed by name; and that an address which hides one
// that is not public, as IPv6 can, is not dialled.
func FuzzWebhook(f *testing.F) {
	for _, seed := range []string{
		"https://example.org/hook", "http://hooks.internal/x", "http://example.org", "https://", "ftp://hooks.internal",
		"https://hooks.internal@example.org/", "//hooks.internal/x", "https://[::1]:8/", "127.0.0.1:80", "10.0.0.1:443",
		"[::ffff:169.254.169.254]:80", "[64:ff9b::a00:1]:80", "[2002:7f00:1::]:80", "[fe80::1%eth0]:80", "8.8.8.8:443",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := New(Config{Webhook: s, AllowHosts: []string{"hooks.internal"}}); err == nil {
			u, err := url.Parse(s)
			if err != nil || u.Scheme != "https" &&
				(u.Scheme != "http" || !strings.EqualFold(u.Hostname(), "hooks.internal")) {
				t.Errorf("%q is taken as a webhook", s)
			}
		}
		if dialPublic("tcp", s, nil) != nil {
			return
		}
		to, err := netip.ParseAddrPort(s)
		if a := to.Addr(); err != nil || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() ||
			a.IsUnspecified() || a.Is4In6() || a.Zone() != "" {
			t.Errorf("%q is dialled as public", s)
		}
	})
}
