package httpapi

import (
	"net"
	"net/netip"
	"strings"
)

// hosts holds the names of this server. A browser that was led here by a foreign name (DNS rebinding) sends that name
// in the Host header, and is refused.
type hosts struct {
	anyAddress bool // it listens on all addresses; each is accepted, because an address cannot be rebound
	names      map[string]bool
}

func newHosts(listen string, extra []string) hosts {
	host := hostOf(listen)
	h := hosts{names: map[string]bool{}}
	addr, err := netip.ParseAddr(host)
	h.anyAddress = host == "" || err == nil && addr.IsUnspecified()
	for _, name := range append(extra, host) {
		if name = hostOf(name); name != "" {
			h.names[name] = true
		}
	}
	return h
}

func (h hosts) accept(header string) bool {
	host := hostOf(header)
	if isLoopback(host) || h.names[host] && host != "" {
		return true
	}
	_, err := netip.ParseAddr(host)
	return h.anyAddress && err == nil
}

// hostOf returns the name or address of a Host header or listen address, without port, brackets and final dot.
func hostOf(s string) string {
	if host, _, err := net.SplitHostPort(s); err == nil {
		s = host
	} else if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		s = s[1 : len(s)-1]
	}
	return strings.ToLower(strings.TrimSuffix(s, "."))
}

// isLoopback reports whether a name or address can only be reached from this machine.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
