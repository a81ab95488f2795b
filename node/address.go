package node

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2/maybe"
)

// The files in the data folder with which callers on this machine reach the server.
const (
	TokenName   = "admin.token"
	AddressName = "admin.address" // the loopback address and port of the server that accepts the token
)

// RecordAddress writes the loopback address of this server into a file beside the admin token, so that commands send
// the token to this address only. A server without a loopback address removes the file. Serve calls RecordAddress; a
// program that announces the address calls it before.
func (n *Node) RecordAddress(addr net.Addr) {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || tcp.Port == 0 {
		return // a Pipe, which other processes cannot reach
	}
	path := filepath.Join(n.cfg.Data, AddressName)
	at, ok := loopbackOf(tcp.AddrPort())
	if !ok {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			n.log.Warn("the address beside the admin token could not be removed", "error", err)
		}
		return
	}
	if known, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(known)) == at.String() {
		return
	}
	if err := maybe.WriteFile(path, []byte(at.String()+"\n"), 0o600); err != nil {
		n.log.Warn("the address beside the admin token could not be written: "+
			"commands on this machine do not find the token", "error", err)
	}
}

// loopbackOf returns the loopback address at which a listener answers, if there is one.
func loopbackOf(at netip.AddrPort) (netip.AddrPort, bool) {
	addr := at.Addr().Unmap()
	switch {
	case addr.IsUnspecified():
		addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case !addr.IsLoopback():
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(addr, at.Port()), true
}
