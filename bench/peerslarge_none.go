//go:build !peers

package main

import (
	"context"
	"fmt"
	"net"
)

// largePeers names those that are built with -tags peers.
func largePeers() []peer {
	missing := func(name string) peer {
		return peer{name: name, widths: []int{1}, start: func(context.Context, *bench, int) (peerRun, error) {
			return nil, fmt.Errorf("%s %w: build with -tags peers", name, errMissing)
		}}
	}
	return []peer{missing("NATS JetStream"), missing("etcd leases")}
}

func serveLarge(context.Context, string, net.Listener) (ok bool, err error) { return false, nil }
