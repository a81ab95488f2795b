package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"lessor"
	"lessor/internal/alert"
	"lessor/internal/config"
	"lessor/internal/fault"
	"lessor/internal/host"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/telemetry"
)

// observe receives the statistics of every commit.
func (n *Node) observe(s scheduler.Stats) {
	n.telemetry.Observe(s)
	n.dashboard.Observe(s)
	n.logCommit(s)
}

// logCommit logs a failure. A conflict is none: the nodes on one store commit at the same time, and one of them
// repeats.
func (n *Node) logCommit(s scheduler.Stats) {
	_, isFault := errors.AsType[*fault.Fault](s.Err) // fault has logged it
	switch {
	case isFault:
	case s.Repeated:
		n.log.Debug("a commit is repeated", "calls", s.Calls, "error", s.Err)
	case s.Err != nil:
		n.log.Error("a commit failed", "calls", s.Calls, "error", s.Err)
	}
}

// fault logs and counts a panic that was caught, with what is needed to repeat it.
func (n *Node) fault(f *fault.Fault) {
	n.telemetry.Fault(f.Place)
	n.log.Error("fault", "place", f.Place, "error", f, "calls", f.Calls, "stack", string(f.Stack))
}

// alert logs an alert that was raised or cleared, and sends it to the webhook.
func (n *Node) alert(a lessor.Alert) {
	if a.ClearedAt != 0 {
		n.log.Info("alert cleared", "kind", a.Kind, "subject", a.Subject, "alert", a.ID)
	} else {
		n.log.Warn("alert raised", "message", a.Message, "kind", a.Kind, "subject", a.Subject, "tenant_id", a.TenantID,
			"alert", a.ID)
	}
	if n.alerts == nil {
		return
	}
	body, err := json.Marshal(a)
	if err != nil {
		n.log.Error("an alert cannot be written", "alert", a.ID, "error", err)
		return
	}
	n.alerts.Send(a.ID.String(), body)
}

// openAlerts prepares the webhook, if one is configured.
func (n *Node) openAlerts() (err error) {
	c := n.cfg.Alerts
	if c.Webhook == "" {
		return nil
	}
	n.alerts, err = alert.New(alert.Config{
		Webhook: c.Webhook, Secret: c.WebhookSecret, AllowHosts: c.AllowHosts,
		Dropped: func(id string, why error) {
			n.log.Error("an alert did not reach the webhook", "alert", id, "error", why)
		},
	})
	if err != nil {
		return fmt.Errorf("alerts.webhook: %w", err)
	}
	return nil
}

// openTraces prepares tracing, if a collector is configured.
func (n *Node) openTraces() (err error) {
	n.traces, err = telemetry.NewTraces(telemetry.TracesConfig{
		Endpoint: n.cfg.Telemetry.OTLPEndpoint, Version: Version, Instance: n.name(),
		Failed: func(err error) { n.log.Warn("spans could not be sent", "error", err) },
	})
	if err != nil {
		return fmt.Errorf("telemetry.otlp_endpoint: %w", err)
	}
	return nil
}

// scrapeTimeout bounds how long a scrape of the metrics waits for the scheduler.
const scrapeTimeout = time.Second

// gauges returns the state of the scheduler for the metrics.
func (n *Node) gauges() (scheduler.Figures, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	f, err := n.scheduler.Figures(ctx)
	return f, err == nil
}

// sample measures the host and the API for the busy rating.
func (n *Node) sample(h *host.Sampler) func() (lessor.BusyInputs, error) {
	return func() (in lessor.BusyInputs, err error) {
		in.CPUPercent, in.MemoryPercent, err = h.Sample()
		in.P95MS, in.ErrorShare, in.InFlight, in.Requests = n.telemetry.APIWindow(time.Now())
		return in, err
	}
}

// busyPoints reverses the thresholds: the settings list them in rising order, the rules in falling order.
func busyPoints(p config.Points) rules.BusyPoints {
	highestFirst := func(limits []float64) rules.Points {
		points := slices.Clone(limits)
		slices.Reverse(points)
		return points
	}
	return rules.BusyPoints{
		CPUPercent: highestFirst(p.CPU), MemoryPercent: highestFirst(p.Memory), P95MS: highestFirst(p.P95MS),
		ErrorShare: highestFirst(p.ErrorShare), InFlight: highestFirst(p.InFlight),
	}
}

// leveled returns log with its own level, which can be changed at run time. The name of the level is known to be valid.
func leveled(log *slog.Logger, level string) (*slog.Logger, *slog.LevelVar) {
	v := new(slog.LevelVar)
	_ = v.UnmarshalText([]byte(level))
	return slog.New(levelHandler{log.Handler(), v}), v
}

// levelHandler passes on the records of its level and above.
type levelHandler struct {
	slog.Handler
	level *slog.LevelVar
}

func (h levelHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level.Level() && h.Handler.Enabled(ctx, l)
}

func (h levelHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return levelHandler{h.Handler.WithAttrs(attrs), h.level}
}

func (h levelHandler) WithGroup(name string) slog.Handler {
	return levelHandler{h.Handler.WithGroup(name), h.level}
}
