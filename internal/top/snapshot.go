// Package top shows a scheduler on a terminal, live: leases with their time left, the queue, workers and alerts. Its
// user can filter, inspect and cancel.
//
// Text from a job or a worker never reaches the terminal as a control sequence (TestHostileTextIsHarmless), and a job
// is cancelled only after a confirmation (TestCancelAsksFirst). The command lessor top calls the package.
package top

import (
	"context"
	"fmt"

	"lessor"
	"lessor/client"
)

// Snapshot is the state at one instant. Its lists are cut at the limit of Read.
type Snapshot struct {
	At      lessor.Instant  `json:"at"`
	Status  lessor.Status   `json:"status"`
	Leases  []lessor.Lease  `json:"leases"`
	Queue   []lessor.Job    `json:"queue"`
	Workers []lessor.Worker `json:"workers"`
	Alerts  []lessor.Alert  `json:"alerts"`
}

// Read asks the server for a snapshot with at most limit leases, jobs and alerts, newest first.
func Read(ctx context.Context, c *client.Client, limit int, now lessor.Instant) (s Snapshot, err error) {
	s.At = now
	if s.Status, err = c.Status(ctx); err != nil {
		return s, err
	}
	if s.Leases, _, err = c.Leases(ctx, "", limit, ""); err != nil {
		return s, err
	}
	if s.Queue, _, err = c.Jobs(ctx, lessor.JobFilter{State: lessor.Queued, Limit: limit}); err != nil {
		return s, err
	}
	if s.Workers, err = c.Workers(ctx); err != nil {
		return s, err
	}
	s.Alerts, _, err = c.Alerts(ctx, lessor.AlertFilter{Open: true, Limit: limit})
	return s, err
}

// Line sums up the snapshot in one line.
func (s *Snapshot) Line() string {
	line := fmt.Sprintf("%s  queued %d  leases %d  units %d/%d  busy %d  workers %d  alerts %d",
		s.At, s.queued(), s.Status.ActiveLeases, s.Status.LeasedUnits, s.Status.UsableUnits, s.Status.Busy,
		len(s.Workers), len(s.Alerts))
	if s.Status.Draining {
		line += "  draining"
	}
	if s.Status.BrakeUntil != 0 {
		line += "  brake until " + s.Status.BrakeUntil.String()
	}
	return line
}

func (s *Snapshot) queued() int {
	q := s.Status.QueueDepth
	return q.High + q.Normal + q.Low + q.Background
}
