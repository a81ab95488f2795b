package cli

import (
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

// adminToken is what a data folder says: the admin token, and where the server listens that wrote it.
type adminToken struct {
	path    string // of the token's file
	token   string // "" = there is none
	address string // a loopback address and port; "" = not known
}

// adminToken reads the admin token of the data folder. One that is not there, or not ours to read, means none unless its folder was named:
// on a loopback address most calls need no token.
func (a *app) adminToken() (adminToken, error) {
	data := a.reach.data
	if data == "" {
		data = a.getenv("LESSOR_DATA")
	}
	if data == "" {
		data = config.Default().Data
	}
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

// match returns the list of servers, and the one of them that wrote the token, "" if none did. The name localhost is replaced by that
// server's address, because it may lead to another program on this machine as well.
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
	if u, err := url.Parse(server); err == nil && u.Scheme == "http" && (u.Path == "" || u.Path == "/") && u.RawQuery == "" && u.User == nil {
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
