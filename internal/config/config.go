// Package config holds every setting of a Lessor server in one struct, and the source of each value.
//
// Load merges four sources, later ones over earlier ones: defaults, a YAML file, the environment, flags. Each source
// gives text, and one parser per kind of value reads that text. So a value is accepted or refused no matter where it
// was set, and an error can always name the key, the value, its source and the allowed values. The table in keys.go
// lists the keys; Load refuses any other key.
//
// The package decides nothing about jobs and leases, opens nothing but the file, and keeps no state. The command and
// node call it.
package config

import (
	"strings"
	"time"
)

// Config holds the settings. In a Config made by hand, a zero field means the default (WithDefaults). A Config from
// Load or WithDefaults is complete: a zero field means zero.
type Config struct {
	Listen     string
	Data       string
	Store      string // empty = sqlite: in the data folder
	Workspace  string // empty = in the data folder
	AdminToken string // empty = created at the first start
	Auth       Auth
	Lease      Lease
	Capacity   Capacity
	Tenants    Tenants
	Jobs       Jobs
	Output     Output
	Circuit    Circuit
	Sentinel   Sentinel
	Executor   Executor
	Recovery   Recovery
	Retention  Retention
	Alerts     Alerts
	Telemetry  Telemetry
	HTTP       HTTP

	complete bool // a zero field means zero
}

// Auth says who needs a token.
type Auth string

// The values of Auth. With LoopbackOpen, callers on this machine need no token for most calls.
const (
	LoopbackOpen Auth = "loopback-open"
	AuthRequired Auth = "required"
)

// Lease holds the settings of leases and their expiry.
type Lease struct {
	TTL        time.Duration
	Grace      time.Duration
	Sweep      time.Duration
	BrakeShare int
	BrakeMin   int
	BrakeRate  int
}

// Capacity says how many units may be leased at once.
type Capacity struct {
	TotalUnits   int
	ReserveUnits int
	Busy         Busy
	Backfill     bool
	Percent      []int // usable percentage of the units, by busy rating 0..10
	Points       Points
}

// Points are the thresholds of the busy rating. Reaching the first threshold of a list gives one point, the second two,
// and so on.
type Points struct {
	CPU        []float64 // percent
	Memory     []float64 // percent
	P95MS      []float64 // milliseconds
	ErrorShare []float64 // 0..1
	InFlight   []float64 // requests
}

// Tenants holds the settings of tenants.
type Tenants struct {
	DefaultCap int
}

// Jobs holds the defaults and limits of submissions.
type Jobs struct {
	MaxAttempts      int
	BackoffFirst     time.Duration
	BackoffMax       time.Duration
	MaxInterruptions int
	MaxMessages      int
	PayloadLimit     Size
	JournalLimit     Size
	JournalEntry     Size
}

// Output says how much of each stream of an attempt's output is kept. A Tail of 0 keeps nothing.
type Output struct {
	Head Size
	Tail Size
}

// Circuit says when a definition that keeps failing is stopped, and for how long.
type Circuit struct {
	Failures int
	Cooldown time.Duration
}

// Sentinel holds the settings of sentinel files, which show that commands are running.
type Sentinel struct {
	Interval   time.Duration
	Scan       time.Duration
	StaleAfter time.Duration
	DeadAfter  time.Duration
}

// Executor holds the settings of running commands.
type Executor struct {
	KillGrace time.Duration
}

// Recovery holds the settings of the monitor that finds commands again after a restart.
type Recovery struct {
	Limit         time.Duration
	Watch         time.Duration
	Poll          time.Duration
	ResumedWithin time.Duration
	CleanupDelay  time.Duration
	CleanUnknown  bool
}

// Retention says how long records are kept after their end.
type Retention struct {
	Jobs       time.Duration
	Audit      time.Duration
	Workspaces time.Duration
}

// Alerts says where alerts are sent.
type Alerts struct {
	Webhook       string
	WebhookSecret string
	AllowHosts    []string
	JobFailed     bool // jobs that fail for good raise an alert; to switch it off, clear it after WithDefaults
}

// Telemetry holds the settings of logs and traces.
type Telemetry struct {
	OTLPEndpoint string
	Log          string // text or json
	LogLevel     string // debug, info, warn or error
}

// HTTP holds the settings of the HTTP server.
type HTTP struct {
	Hosts          []string // accepted host names, besides the server's own addresses
	TrustedProxies []string // addresses and networks of proxies whose X-Forwarded-* headers are trusted
}

// Default returns the defaults, complete.
func Default() Config {
	return Config{
		Listen: "127.0.0.1:5377",
		Data:   "./lessor-data",
		Auth:   LoopbackOpen,
		Lease:  Lease{TTL: time.Minute, Sweep: time.Second, BrakeShare: 30, BrakeMin: 10, BrakeRate: 200},
		Capacity: Capacity{
			TotalUnits: 100, ReserveUnits: 5,
			Percent: []int{100, 100, 100, 80, 65, 50, 35, 25, 15, 10, 0},
			Points: Points{
				CPU:        []float64{50, 70, 85, 95},
				Memory:     []float64{70, 85, 95},
				P95MS:      []float64{400, 800, 1500},
				ErrorShare: []float64{0.01, 0.03, 0.10},
				InFlight:   []float64{50, 100},
			},
		},
		Tenants: Tenants{DefaultCap: 25},
		Jobs: Jobs{
			MaxAttempts: 5, BackoffFirst: time.Second, BackoffMax: 5 * time.Minute, MaxInterruptions: 20,
			MaxMessages:  1000,
			PayloadLimit: 256 * KiB, JournalLimit: 16 * MiB, JournalEntry: 64 * KiB,
		},
		Output:  Output{Head: 64 * KiB, Tail: MiB},
		Circuit: Circuit{Failures: 5, Cooldown: 300 * time.Second},
		Sentinel: Sentinel{
			Interval: 30 * time.Second, Scan: time.Minute, StaleAfter: 2 * time.Minute, DeadAfter: 10 * time.Minute,
		},
		Executor: Executor{KillGrace: 10 * time.Second},
		Recovery: Recovery{
			Limit: 30 * time.Minute, Watch: 5 * time.Minute, Poll: 10 * time.Second, ResumedWithin: time.Minute,
			CleanupDelay: 30 * time.Second,
		},
		Alerts:    Alerts{JobFailed: true},
		Retention: Retention{Jobs: 7 * day, Audit: 365 * day, Workspaces: 7 * day},
		Telemetry: Telemetry{Log: "text", LogLevel: "info"},
		complete:  true,
	}
}

// WithDefaults returns c with the default for every zero field, unless c is complete. Store and Workspace lie in the
// data folder by default.
func (c Config) WithDefaults() Config {
	if !c.complete {
		d := Default()
		for _, k := range Keys() {
			if k.zero(&c) {
				k.copy(&c, &d)
			}
		}
		c.complete = true
	}
	if c.Store == "" {
		c.Store = "sqlite:" + under(c.Data, "lessor.db")
	}
	if c.Workspace == "" {
		c.Workspace = under(c.Data, "workspace")
	}
	return c
}

// under names a file in the data folder. It keeps the folder as the user wrote it, for messages.
func under(data, name string) string { return strings.TrimRight(data, "/") + "/" + name }
