package node

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"lessor/internal/store/sqlite"
)

// TestAddressIsKeptBesideTheToken: the file has a loopback address of the server, and is removed when the server has
// none. A pipe changes nothing.
func TestAddressIsKeptBesideTheToken(t *testing.T) {
	cfg := testConfig(t)
	n, err := open(t.Context(), cfg.settings(), nil, sqlite.Config{Synchronous: "OFF"})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	path := filepath.Join(cfg.Data, AddressName)
	for _, tt := range []struct {
		addr net.Addr
		want string
	}{
		{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5377}, "127.0.0.1:5377\n"},
		{&net.TCPAddr{IP: net.IPv6loopback, Port: 1}, "[::1]:1\n"},
		{&net.TCPAddr{IP: net.IPv6unspecified, Port: 2}, "127.0.0.1:2\n"},
		{&net.TCPAddr{IP: net.IPv4zero, Port: 3}, "127.0.0.1:3\n"},
		{loopback, "127.0.0.1:3\n"},
		{&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5377}, ""},
		{&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5377}, ""},
	} {
		n.RecordAddress(tt.addr)
		raw, err := os.ReadFile(path)
		if string(raw) != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%v: the file says %q (%v), want %q", tt.addr, raw, err, tt.want)
		}
		if info, err := os.Stat(path); err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%v: the file has mode %v, want 0600", tt.addr, info.Mode())
		}
	}
}
