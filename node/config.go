package node

import (
	"time"

	"lessor/internal/config"
)

// Config holds the settings of a node. A field that is zero takes its default, so that Config{} is a complete
// configuration. The fields are named after the keys of the configuration file; Open refuses a value that the file
// could not hold, and its error names the key.
type Config struct {
	// Listen is the address HOST:PORT that the node will serve. Only a loopback address lets callers in without a
	// token. Open does not listen; Serve takes a listener. The default is "127.0.0.1:5377".
	Listen string
	// Data is the folder of the database, the admin token and the workspace. The default is "./lessor-data".
	Data string
	// Store is "sqlite:PATH" or "postgres://USER@HOST/DATABASE". The default is the SQLite database lessor.db in Data.
	Store string
	// Workspace is the folder in which `lessor work` runs commands. The default is the folder workspace in Data.
	Workspace string
	// AdminToken has 8 to 200 visible ASCII characters. The default is the token in the file admin.token in Data, which
	// the first start creates.
	AdminToken string
	// RequireToken makes every HTTP call need a token, also calls from this machine.
	RequireToken bool

	Lease     LeaseConfig
	Capacity  CapacityConfig
	Tenants   TenantConfig
	Jobs      JobConfig
	Output    OutputConfig
	Circuit   CircuitConfig
	Sentinel  SentinelConfig
	Recovery  RecoveryConfig
	Retention RetentionConfig
	Alerts    AlertConfig
	Telemetry TelemetryConfig
	HTTP      HTTPConfig
}

// LeaseConfig sets how long leases live and how they expire.
type LeaseConfig struct {
	// TTL is how long a lease lives without a heartbeat, unless its worker asked for another ttl. The default is 1
	// minute.
	TTL time.Duration
	// Grace is added to every ttl. The default is 0.
	Grace time.Duration
	// Sweep is how often the node looks for leases that are over. The default, and the maximum, is 1 second.
	Sweep time.Duration
	// The brake stops mass expiry, for example after a network failure. It engages when more than BrakeShare percent of
	// all leases, and at least BrakeMin, are silent; then at most BrakeRate leases expire per second. The defaults are
	// 30, 10 and 200.
	BrakeShare, BrakeMin, BrakeRate int
}

// CapacityConfig sets how much may be leased at the same time.
type CapacityConfig struct {
	// TotalUnits is the number of units that jobs can hold, before the busy rating and the reserve. The default is 100.
	TotalUnits int
	// ReserveUnits are never leased. The default is 5; a negative number means none.
	ReserveUnits int
	// Busy fixes the busy rating, 0 to 10. With nil, the default, the node measures how busy its host is.
	Busy *int
	// Backfill lets smaller jobs overtake a job that does not fit at the moment.
	Backfill bool
	// Percent is the usable share of TotalUnits for each busy rating 0 to 10. The default is
	// 100, 100, 100, 80, 65, 50, 35, 25, 15, 10, 0.
	Percent []int
	// Points are the thresholds of the busy rating.
	Points PointConfig
}

// PointConfig holds the thresholds of the busy rating, in rising order. A value that reaches the n-th threshold of
// its list adds n points. A nil list takes its default; an empty one adds no points.
type PointConfig struct {
	CPU        []float64 // percent; the default is 50, 70, 85, 95
	Memory     []float64 // percent; the default is 70, 85, 95
	P95MS      []float64 // 95th percentile of the API's answer times in ms; the default is 400, 800, 1500
	ErrorShare []float64 // share of 5xx answers, 0 to 1; the default is 0.01, 0.03, 0.1
	InFlight   []float64 // requests in progress; the default is 50, 100
}

// TenantConfig sets the limits of tenants.
type TenantConfig struct {
	// DefaultCap is how many leases a tenant may hold at the same time, unless the tenant has its own cap. The
	// default is 25. Jobs without a tenant have no cap.
	DefaultCap int
}

// JobConfig holds the defaults and limits of submissions.
type JobConfig struct {
	// MaxAttempts is how many attempts a job has. The default is 5.
	MaxAttempts int
	// BackoffFirst bounds the delay after the first failed attempt. The bound doubles with each further one, up to
	// BackoffMax. The defaults are 1 second and 5 minutes.
	BackoffFirst, BackoffMax time.Duration
	// MaxInterruptions is how often a job may be released without progress before it fails for good. The default is
	// 20; a negative number means 0.
	MaxInterruptions int
	// MaxMessages is how many messages to one job may wait for its worker. The default is 1000.
	MaxMessages int
	// PayloadLimit is the largest body of one submission in bytes. The default is 256 KiB.
	PayloadLimit int64
	// JournalLimit is the largest journal of a job, and JournalEntry the largest entry, in bytes. The defaults are 16
	// MiB and 64 KiB.
	JournalLimit, JournalEntry int64
}

// OutputConfig sets how much of each stream of an attempt's output is kept.
type OutputConfig struct {
	// HeadBytes of the beginning are kept. The default is 64 KiB; a negative number means 0.
	HeadBytes int64
	// TailBytes of the end are kept, at least. The default is 1 MiB; a negative number means that no output is kept.
	TailBytes int64
}

// CircuitConfig sets the circuit breaker of definitions that have no bounds of their own.
type CircuitConfig struct {
	// Failures is how many failed attempts in a row open the circuit. The default is 5.
	Failures int
	// Cooldown is how long the circuit stays open before one job is tried. The default is 5 minutes.
	Cooldown time.Duration
}

// SentinelConfig sets how the node watches the files with which running commands show that they are alive.
type SentinelConfig struct {
	// Interval is how often a command writes its file; `lessor work` reads it. The default is 30 seconds.
	Interval time.Duration
	// Scan is how often the node reads the whole workspace. The default is 1 minute.
	Scan time.Duration
	// StaleAfter is the silence after which a command is stale, which raises an alert. The default is 2 minutes.
	StaleAfter time.Duration
	// DeadAfter is the silence after which a command is dead and its attempt fails. The default is 10 minutes.
	DeadAfter time.Duration
}

// RecoveryConfig sets how the node treats commands that it finds after a restart.
type RecoveryConfig struct {
	// Limit is the longest silence of a command that the node still waits for. The default is 30 minutes.
	Limit time.Duration
	// Watch is how long the node waits for a sign of life, and holds the leases. The default is 5 minutes.
	Watch time.Duration
	// Poll is how often the node checks these commands meanwhile. The default is 10 seconds.
	Poll time.Duration
	// ResumedWithin is the age up to which a sign of life counts. The default is 1 minute.
	ResumedWithin time.Duration
	// CleanupDelay is the time between the verdict "dead" and the removal of the folder. The default is 30 seconds; a
	// negative duration means 0.
	CleanupDelay time.Duration
	// CleanUnknown also removes the folders of dead commands whose jobs the store does not know.
	CleanUnknown bool
}

// RetentionConfig sets how long data is kept after a job has ended.
type RetentionConfig struct {
	// Jobs is how long payload, result, checkpoint and idempotency key are kept. The default is 7 days.
	Jobs time.Duration
	// Audit is how long the outcome of a job, its attempts and its record are kept. The default is 365 days.
	Audit time.Duration
	// Workspaces is how long the folders of jobs are kept. The default is 7 days.
	Workspaces time.Duration
}

// AlertConfig sets where alerts go, besides the store and the log.
type AlertConfig struct {
	// Webhook is the URL that receives each alert as a POST with JSON. It must be https, unless AllowHosts names its
	// host.
	Webhook string
	// WebhookSecret signs the requests: X-Lessor-Signature carries the HMAC-SHA256 of the body.
	WebhookSecret string
	// AllowHosts are hosts that the webhook may be on although they are private, local or speak http.
	AllowHosts []string
	// IgnoreFailedJobs raises no alert for jobs that fail for good.
	IgnoreFailedJobs bool
}

// TelemetryConfig sets what the node reports about itself.
type TelemetryConfig struct {
	// OTLPEndpoint is the URL of an OTLP/HTTP collector that receives traces. The default is none.
	OTLPEndpoint string
	// LogLevel is the lowest level that is logged: "debug", "info", "warn" or "error". The default is "info".
	LogLevel string
}

// HTTPConfig sets who may call the HTTP server, and how.
type HTTPConfig struct {
	// Hosts are the names by which the server may be called, besides its own addresses and localhost. With a name set,
	// every call needs a token.
	Hosts []string
	// TrustedProxies are the addresses and networks of proxies whose X-Forwarded-For and X-Forwarded-Proto are
	// believed.
	TrustedProxies []string
}

// settings returns c with all defaults applied, in the form that the configuration file is read into.
func (c Config) settings() config.Config {
	s := config.Config{
		Listen: c.Listen, Data: c.Data, Store: c.Store, Workspace: c.Workspace, AdminToken: c.AdminToken,
		Lease: config.Lease(c.Lease),
		Capacity: config.Capacity{
			TotalUnits: c.Capacity.TotalUnits, ReserveUnits: c.Capacity.ReserveUnits, Backfill: c.Capacity.Backfill,
			Percent: c.Capacity.Percent, Points: config.Points(c.Capacity.Points),
		},
		Tenants: config.Tenants(c.Tenants),
		Jobs: config.Jobs{
			MaxAttempts: c.Jobs.MaxAttempts, BackoffFirst: c.Jobs.BackoffFirst, BackoffMax: c.Jobs.BackoffMax,
			MaxInterruptions: c.Jobs.MaxInterruptions, MaxMessages: c.Jobs.MaxMessages,
			PayloadLimit: config.Size(c.Jobs.PayloadLimit),
			JournalLimit: config.Size(c.Jobs.JournalLimit), JournalEntry: config.Size(c.Jobs.JournalEntry),
		},
		Output:    config.Output{Head: config.Size(c.Output.HeadBytes), Tail: config.Size(c.Output.TailBytes)},
		Circuit:   config.Circuit(c.Circuit),
		Sentinel:  config.Sentinel(c.Sentinel),
		Recovery:  config.Recovery(c.Recovery),
		Retention: config.Retention(c.Retention),
		Alerts: config.Alerts{
			Webhook: c.Alerts.Webhook, WebhookSecret: c.Alerts.WebhookSecret, AllowHosts: c.Alerts.AllowHosts,
		},
		Telemetry: config.Telemetry{OTLPEndpoint: c.Telemetry.OTLPEndpoint, LogLevel: c.Telemetry.LogLevel},
		HTTP:      config.HTTP(c.HTTP),
	}
	if c.RequireToken {
		s.Auth = config.AuthRequired
	}
	if c.Capacity.Busy != nil {
		s.Capacity.Busy = config.Busy{Set: true, Rating: *c.Capacity.Busy}
	}
	s = s.WithDefaults()
	s.Alerts.JobFailed = !c.Alerts.IgnoreFailedJobs
	s.Capacity.ReserveUnits = max(s.Capacity.ReserveUnits, 0)
	s.Jobs.MaxInterruptions = max(s.Jobs.MaxInterruptions, 0)
	s.Output.Head, s.Output.Tail = max(s.Output.Head, 0), max(s.Output.Tail, 0)
	s.Recovery.CleanupDelay = max(s.Recovery.CleanupDelay, 0)
	return s
}
