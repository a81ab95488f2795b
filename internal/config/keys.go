package config

import (
	"strings"
	"time"
)

// Key is one setting. To add one: a field in Config, its default in Default, a row in Keys, a row in
// docs/configuration.md (a test compares them).
type Key struct {
	// Name is the path of the key in the file, like lease.ttl.
	Name string
	// Allowed says in words which values are accepted.
	Allowed string
	// Secret values are never shown.
	Secret bool

	url   bool              // its value may contain a password
	field func(*Config) any // a pointer to its field
	ok    func(*Config) bool
}

// Env is the environment variable of the key.
func (k Key) Env() string { return "LESSOR_" + strings.ToUpper(strings.ReplaceAll(k.Name, ".", "_")) }

// Bounds that several keys share.
const (
	shortest  = time.Millisecond
	maxTTL    = 12 * time.Hour // the same as for a ttl in a request
	maxSpan   = 30 * day
	maxKeep   = 3650 * day
	maxCount  = 1_000_000
	maxText   = 4096
	maxHosts  = 100
	minSecret = 8 // characters; a shorter secret could be guessed
)

// Keys returns the table of settings in the order of the file.
func Keys() []Key { return append(schedulerKeys(), operationKeys()...) }

func schedulerKeys() []Key {
	return []Key{
		text("listen", "HOST:PORT, port 0 to 65535", func(c *Config) *string { return &c.Listen }, isAddress),
		text("data", "a folder", func(c *Config) *string { return &c.Data }, isPath),
		hidePassword(text("store", "sqlite:PATH or postgres://USER@HOST/DATABASE",
			func(c *Config) *string { return &c.Store }, isStore)),
		text("workspace", "a folder", func(c *Config) *string { return &c.Workspace }, isPath),
		secret(text("admin_token", "empty, or 8 to 200 visible ASCII characters",
			func(c *Config) *string { return &c.AdminToken }, isToken)),
		text("auth", "loopback-open or required",
			func(c *Config) *Auth { return &c.Auth }, oneOf(LoopbackOpen, AuthRequired)),

		span("lease.ttl", func(c *Config) *time.Duration { return &c.Lease.TTL }, 100*time.Millisecond, maxTTL),
		span("lease.grace", func(c *Config) *time.Duration { return &c.Lease.Grace }, 0, maxTTL),
		// A slower sweep would break the promise that no lease ends later than 2 s after its time.
		span("lease.sweep", func(c *Config) *time.Duration { return &c.Lease.Sweep }, shortest, time.Second),
		number("lease.brake_share", func(c *Config) *int { return &c.Lease.BrakeShare }, 1, 100),
		number("lease.brake_min", func(c *Config) *int { return &c.Lease.BrakeMin }, 1, maxCount),
		number("lease.brake_rate", func(c *Config) *int { return &c.Lease.BrakeRate }, 1, maxCount),

		number("capacity.total_units", func(c *Config) *int { return &c.Capacity.TotalUnits }, 1, maxCount),
		number("capacity.reserve_units", func(c *Config) *int { return &c.Capacity.ReserveUnits }, 0, maxCount-1),
		busy("capacity.busy", func(c *Config) *Busy { return &c.Capacity.Busy }),
		truth("capacity.backfill", func(c *Config) *bool { return &c.Capacity.Backfill }),
		percent("capacity.percent", func(c *Config) *[]int { return &c.Capacity.Percent }),
		points("capacity.points.cpu", func(c *Config) *[]float64 { return &c.Capacity.Points.CPU }, 100),
		points("capacity.points.memory", func(c *Config) *[]float64 { return &c.Capacity.Points.Memory }, 100),
		points("capacity.points.p95_ms", func(c *Config) *[]float64 { return &c.Capacity.Points.P95MS }, maxCount),
		points("capacity.points.error_share", func(c *Config) *[]float64 { return &c.Capacity.Points.ErrorShare }, 1),
		points("capacity.points.in_flight",
			func(c *Config) *[]float64 { return &c.Capacity.Points.InFlight }, maxCount),

		number("tenants.default_cap", func(c *Config) *int { return &c.Tenants.DefaultCap }, 1, maxCount),

		number("jobs.max_attempts", func(c *Config) *int { return &c.Jobs.MaxAttempts }, 1, 50),
		span("jobs.backoff_first", func(c *Config) *time.Duration { return &c.Jobs.BackoffFirst }, shortest, maxSpan),
		span("jobs.backoff_max", func(c *Config) *time.Duration { return &c.Jobs.BackoffMax }, shortest, maxSpan),
		number("jobs.max_interruptions", func(c *Config) *int { return &c.Jobs.MaxInterruptions }, 0, maxCount),
		number("jobs.max_messages", func(c *Config) *int { return &c.Jobs.MaxMessages }, 1, 100_000),
		size("jobs.payload_limit", func(c *Config) *Size { return &c.Jobs.PayloadLimit }, KiB, 16*MiB),
		size("jobs.journal_limit", func(c *Config) *Size { return &c.Jobs.JournalLimit }, KiB, 256*MiB),
		size("jobs.journal_entry", func(c *Config) *Size { return &c.Jobs.JournalEntry }, KiB, MiB),

		size("output.head", func(c *Config) *Size { return &c.Output.Head }, 0, 64*MiB),
		size("output.tail", func(c *Config) *Size { return &c.Output.Tail }, 0, 64*MiB),

		number("circuit.failures", func(c *Config) *int { return &c.Circuit.Failures }, 1, maxCount),
		span("circuit.cooldown", func(c *Config) *time.Duration { return &c.Circuit.Cooldown }, shortest, maxSpan),
	}
}

func operationKeys() []Key {
	return []Key{
		span("sentinel.interval", func(c *Config) *time.Duration { return &c.Sentinel.Interval }, shortest, maxSpan),
		span("sentinel.scan", func(c *Config) *time.Duration { return &c.Sentinel.Scan }, shortest, maxSpan),
		span("sentinel.stale_after",
			func(c *Config) *time.Duration { return &c.Sentinel.StaleAfter }, shortest, maxSpan),
		span("sentinel.dead_after", func(c *Config) *time.Duration { return &c.Sentinel.DeadAfter }, shortest, maxSpan),

		span("executor.kill_grace", func(c *Config) *time.Duration { return &c.Executor.KillGrace }, 0, time.Hour),

		span("recovery.limit", func(c *Config) *time.Duration { return &c.Recovery.Limit }, shortest, maxSpan),
		span("recovery.watch", func(c *Config) *time.Duration { return &c.Recovery.Watch }, shortest, maxSpan),
		span("recovery.poll", func(c *Config) *time.Duration { return &c.Recovery.Poll }, shortest, maxSpan),
		span("recovery.resumed_within",
			func(c *Config) *time.Duration { return &c.Recovery.ResumedWithin }, shortest, maxSpan),
		span("recovery.cleanup_delay", func(c *Config) *time.Duration { return &c.Recovery.CleanupDelay }, 0, maxSpan),
		truth("recovery.clean_unknown", func(c *Config) *bool { return &c.Recovery.CleanUnknown }),

		span("retention.jobs", func(c *Config) *time.Duration { return &c.Retention.Jobs }, shortest, maxKeep),
		span("retention.audit", func(c *Config) *time.Duration { return &c.Retention.Audit }, shortest, maxKeep),
		span("retention.workspaces",
			func(c *Config) *time.Duration { return &c.Retention.Workspaces }, shortest, maxKeep),

		hidePassword(text("alerts.webhook", "empty, or an http or https URL",
			func(c *Config) *string { return &c.Alerts.Webhook }, isURL)),
		secret(text("alerts.webhook_secret", "empty, or 8 to 200 visible ASCII characters",
			func(c *Config) *string { return &c.Alerts.WebhookSecret }, isToken)),
		hosts("alerts.allow_hosts", func(c *Config) *[]string { return &c.Alerts.AllowHosts }),
		truth("alerts.job_failed", func(c *Config) *bool { return &c.Alerts.JobFailed }),

		hidePassword(text("telemetry.otlp_endpoint", "empty, or an http or https URL",
			func(c *Config) *string { return &c.Telemetry.OTLPEndpoint }, isURL)),
		text("telemetry.log", "text or json",
			func(c *Config) *string { return &c.Telemetry.Log }, oneOf("text", "json")),
		text("telemetry.log_level", "debug, info, warn or error",
			func(c *Config) *string { return &c.Telemetry.LogLevel }, oneOf("debug", "info", "warn", "error")),

		hosts("http.hosts", func(c *Config) *[]string { return &c.HTTP.Hosts }),
		networks("http.trusted_proxies", func(c *Config) *[]string { return &c.HTTP.TrustedProxies }),
	}
}
