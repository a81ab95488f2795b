package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// proxies are the networks of trusted proxies. Forwarding headers of other peers do not count.
type proxies []netip.Prefix

func (p proxies) trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// peer returns the address of the connection's other end; it is invalid for a pipe inside the process.
func peer(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr, _ := netip.ParseAddr(host)
	return addr.Unmap()
}

// client returns the origin of a request: the peer, or behind trusted proxies the last hop that is no trusted proxy.
func (p proxies) client(r *http.Request) netip.Addr {
	addr := peer(r)
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && p.trusts(addr); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break // an unknown party wrote the rest
		}
		addr = hop.Unmap()
	}
	return addr
}

// secure reports whether the connection is encrypted, or a trusted proxy says that the caller's is.
func (p proxies) secure(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	protos := r.Header.Values("X-Forwarded-Proto")
	if len(protos) == 0 || !p.trusts(peer(r)) {
		return false
	}
	last := protos[len(protos)-1]
	return strings.EqualFold(strings.TrimSpace(last[strings.LastIndex(last, ",")+1:]), "https")
}
