package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// proxies are the networks of proxies that are believed about who they forward for. What anybody else says of itself is not.
type proxies []netip.Prefix

func (p proxies) trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(addr) })
}

// peer is the address at the other end of the connection; not valid for a pipe inside the process.
func peer(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr, _ := netip.ParseAddr(host)
	return addr.Unmap()
}

// client is the address that a request comes from: the peer, or behind trusted proxies the last hop that is none of them.
func (p proxies) client(r *http.Request) netip.Addr {
	addr := peer(r)
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && p.trusts(addr); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break // what is left of here was written by nobody we know
		}
		addr = hop.Unmap()
	}
	return addr
}

// secure reports whether the caller's side of the connection is encrypted, as far as somebody we trust says so.
func (p proxies) secure(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	said := r.Header.Values("X-Forwarded-Proto")
	if len(said) == 0 || !p.trusts(peer(r)) {
		return false
	}
	last := said[len(said)-1]
	return strings.EqualFold(strings.TrimSpace(last[strings.LastIndex(last, ",")+1:]), "https")
}
