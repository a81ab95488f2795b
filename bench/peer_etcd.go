//go:build peers

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

const (
	childEtcd  = "etcd"
	etcdWindow = 100 // keep-alives of a stream that are sent and not answered
)

// etcdPeer keeps leases alive by keep-alive streams, which is what etcd has of this work.
var etcdPeer = peer{
	name:   "etcd leases",
	about:  "one member; keep-alive streams, 100 under way on each; a keep-alive is not written to disk",
	widths: []int{8},
	start: func(ctx context.Context, b *bench, _ int) (peerRun, error) {
		c, err := b.spawn(ctx, childEtcd, "")
		if err != nil {
			return nil, err
		}
		r := &etcdRun{child: c}
		r.client, err = clientv3.New(clientv3.Config{Endpoints: []string{c.addr}, DialTimeout: 10 * time.Second})
		if err != nil {
			return nil, errors.Join(err, c.end())
		}
		return r, nil
	},
}

// serveEtcd is main in a child.
func serveEtcd(ctx context.Context, ln net.Listener) error {
	addr := ln.Addr().String()
	if err := ln.Close(); err != nil {
		return err
	}
	peerAddr, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	cfg := embed.NewConfig()
	cfg.Dir, cfg.LogLevel = os.Getenv(childData), "fatal"
	cfg.ListenClientUrls = []url.URL{{Scheme: "http", Host: addr}}
	cfg.ListenPeerUrls = []url.URL{{Scheme: "http", Host: peerAddr}}
	cfg.AdvertiseClientUrls, cfg.AdvertisePeerUrls = cfg.ListenClientUrls, cfg.ListenPeerUrls
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	defer e.Close()
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(20 * time.Second):
		return errors.New("etcd did not start")
	}
	fmt.Println("http://" + addr)
	<-ctx.Done()
	return nil
}

type etcdRun struct {
	*child
	client *clientv3.Client
	leases []clientv3.LeaseID
}

func (*etcdRun) enqueue(context.Context, int) error { return errOnlyBeats }
func (*etcdRun) work(context.Context, int) error    { return errOnlyBeats }

func (r *etcdRun) hold(ctx context.Context, n int) error {
	r.leases = make([]clientv3.LeaseID, n)
	return concurrently(ctx, 256, n, func(ctx context.Context, _, item int) error {
		l, err := r.client.Grant(ctx, 3600)
		if err == nil {
			r.leases[item] = l.ID
		}
		return err
	})
}

func (r *etcdRun) beat(ctx context.Context, beats int) error {
	const streams = 8
	calls := pb.NewLeaseClient(r.client.ActiveConnection())
	return concurrently(ctx, streams, streams, func(ctx context.Context, _, n int) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := calls.LeaseKeepAlive(ctx)
		if err != nil {
			return err
		}
		for sent, received := 0, 0; received < beats/streams; {
			if sent < beats/streams && sent-received < etcdWindow {
				id := r.leases[(n+sent*streams)%len(r.leases)]
				if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(id)}); err != nil {
					return err
				}
				sent++
				continue
			}
			if _, err := stream.Recv(); err != nil {
				return err
			}
			received++
		}
		return nil
	})
}

func (r *etcdRun) end() error { return errors.Join(r.client.Close(), r.child.end()) }
