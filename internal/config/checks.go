package config

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

func isAddress(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil || host != "" && !isHost(host) {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// isHost accepts host names and addresses, without scheme, port or path.
func isHost(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		if strings.ContainsFunc(label, func(r rune) bool {
			return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			return false
		}
	}
	return true
}

func isNetwork(s string) bool {
	_, ok := parseNetwork(s)
	return ok
}

// parseNetwork reads an address or a network; an address is a network of one.
func parseNetwork(s string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p.Masked(), true
	}
	addr, err := netip.ParseAddr(s)
	if err != nil || addr.Zone() != "" {
		return netip.Prefix{}, false
	}
	addr = addr.Unmap()
	return netip.PrefixFrom(addr, addr.BitLen()), true
}

// Proxies returns TrustedProxies as networks. It leaves out values that Validate refuses.
func (h HTTP) Proxies() []netip.Prefix {
	var list []netip.Prefix
	for _, s := range h.TrustedProxies {
		if p, ok := parseNetwork(s); ok {
			list = append(list, p)
		}
	}
	return list
}

func isPath(s string) bool { return s != "" && len(s) <= maxText && !strings.ContainsRune(s, 0) }

func isStore(s string) bool {
	_, err := ParseStore(s)
	return err == nil && len(s) <= maxText
}

func isToken(s string) bool {
	invisible := func(r rune) bool { return r <= ' ' || r > '~' }
	return s == "" || len(s) >= minSecret && len(s) <= 200 && !strings.ContainsFunc(s, invisible)
}

func isURL(s string) bool {
	if s == "" {
		return true
	}
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && len(s) <= maxText
}

func oneOf[T ~string](values ...T) func(T) bool {
	return func(v T) bool { return slices.Contains(values, v) }
}
