package node

import (
	"cmp"
	"net"
	"os"

	"lessor"
	"lessor/internal/recovery"
	"lessor/internal/sentinel"
)

// openWorkspace opens the workspace and prepares the monitor of its commands.
func (n *Node) openWorkspace() (err error) {
	if n.workspace, err = sentinel.Open(n.cfg.Workspace); err != nil {
		return err
	}
	s, r := n.cfg.Sentinel, n.cfg.Recovery
	n.recovery = recovery.New(recovery.Config{
		Scheduler: n.scheduler, Workspace: n.workspace, Node: n.name(), Log: n.log, Fault: n.fault,
		Scan: s.Scan, StaleAfter: s.StaleAfter, DeadAfter: s.DeadAfter,
		Limit: r.Limit, Watch: r.Watch, Poll: r.Poll, ResumedWithin: r.ResumedWithin,
		CleanupDelay: r.CleanupDelay, CleanUnknown: r.CleanUnknown, Keep: n.cfg.Retention.Workspaces,
		TTL: n.cfg.Lease.TTL,
	})
	n.telemetry.Sentinels(func() lessor.HeartbeatSummary { return n.recovery.Known().Heartbeats().Summary })
	return nil
}

// name identifies this node in reports: its host name and the port of Listen.
func (n *Node) name() string {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	_, port, err := net.SplitHostPort(n.cfg.Listen)
	if err != nil {
		port = ""
	}
	return net.JoinHostPort(cmp.Or(host, "localhost"), port)
}
