package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"lessor/internal/config"
	"lessor/node"
)

// adminToken is the admin token of a data folder, and the address of the server that wrote it.
type adminToken struct {
	path    string // of the token's file
	token   string // "" = there is none
	address string // a loopback address and port; "" = unknown
}

// adminToken reads the admin token of the data folder. A file that is missing or unreadable means that there is no
// token, because most calls to a loopback address need none; an unreadable file is an error only with --data.
func (a *app) adminToken() (adminToken, error) {
	data := cmp.Or(a.reach.data, a.getenv("LESSOR_DATA"), config.Default().Data)
	t := adminToken{path: filepath.Join(data, node.TokenName)}
	raw, err := os.ReadFile(t.path)
	if err != nil && a.reach.data != "" && !errors.Is(err, fs.ErrNotExist) {
		return t, fmt.Errorf("read the admin token: %w", err)
	}
	t.token = strings.TrimSpace(string(raw))
	if raw, err := os.ReadFile(filepath.Join(data, node.AddressName)); err == nil {
		t.address = strings.TrimSpace(string(raw))
	}
	return t, nil
}

// match returns the list of servers and the one of them that wrote the token, "" if none did. It replaces localhost by
// that server's address, because the name may also resolve to another program on this machine.
func (t adminToken) match(servers string) (list, own string) {
	address, err := netip.ParseAddrPort(t.address)
	if err != nil || !address.Addr().IsLoopback() {
		return servers, ""
	}
	base := "http://" + address.String()
	parts := strings.Split(servers, ",")
	for i, part := range parts {
		if isAt(strings.TrimSpace(part), address) {
			parts[i], own = base, base
		}
	}
	return strings.Join(parts, ","), own
}

// isAt reports whether a server, as a base URL or HOST:PORT, is the one at a loopback address.
func isAt(server string, address netip.AddrPort) bool {
	u, err := url.Parse(server)
	if err == nil && u.Scheme == "http" && (u.Path == "" || u.Path == "/") && u.RawQuery == "" && u.User == nil {
		server = u.Host
	}
	if !strings.Contains(server, ":") {
		server += ":80"
	}
	host, port, err := net.SplitHostPort(server)
	if err != nil || port != fmt.Sprint(address.Port()) {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap() == address.Addr()
}
