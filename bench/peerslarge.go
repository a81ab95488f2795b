//go:build peers

package main

import (
	"context"
	"net"
)

// largePeers take minutes to compile: `make bench-peers` builds them, tests do not.
func largePeers() []peer {
	return []peer{
		natsPeer("NATS JetStream, default sync", childNATS), natsPeer("NATS JetStream, sync always", childNATSAlways),
		etcdPeer,
	}
}

// serveLarge serves a large peer in a child; ok is false if what names none.
func serveLarge(ctx context.Context, what string, ln net.Listener) (ok bool, err error) {
	switch what {
	case childNATS, childNATSAlways:
		return true, serveNATS(ctx, ln, what == childNATSAlways)
	case childEtcd:
		return true, serveEtcd(ctx, ln)
	}
	return false, nil
}
