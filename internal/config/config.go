// Package config is every setting of a Lessor server, in one struct, with where each value came from.
//
// Four sources are merged, the later over the earlier: defaults, a YAML file, the environment, flags. Each gives text,
// and one parser per kind of value reads that text, so that a value is accepted or refused alike wherever it was set and
// the message can always say the key, the value, its source and what is allowed. The table in keys.go is the list of keys; a key
// that is not in it is refused.
//
// It decides nothing about jobs and leases, opens nothing but the file, and keeps no state. cmd and node call it.
package config

import (
	"strings"
	"time"
)

// Config holds the settings. A Config made by hand takes the default for every field that is zero (WithDefaults); one
// that came from Load or WithDefaults is complete, and a zero in it means zero.
type Config struct {
	Listen     string
	Data       string
	Store      string // empty = sqlite: in the data folder
	Workspace  string // empty = in the data folder
	AdminToken string // empty = made at the first start
	Auth       Auth
	Lease      Lease
	Capacity   Capacity
	Tenants    Tenants
	Jobs       Jobs
	Circuit    Circuit
	Sentinel   Sentinel
	Executor   Executor
	Recovery   Recovery
	Retention  Retention
	Alerts     Alerts
	Telemetry  Telemetry
	HTTP       HTTP

	complete bool // zero fields are meant
}

// Auth says who needs a token.
type Auth string

// The rules of access. LoopbackOpen lets callers on this machine in without a token.
const (
	LoopbackOpen Auth = "loopback-open"
	AuthRequired Auth = "required"
)

// Lease is about leases and their expiry.
type Lease struct {
	TTL        time.Duration
	Grace      time.Duration
	Sweep      time.Duration
	BrakeShare int
	BrakeMin   int
	BrakeRate  int
}

// Capacity is about what may be leased at once.
type Capacity struct {
	TotalUnits   int
	ReserveUnits int
	Busy         Busy
	Backfill     bool
	Percent      []int // of the units that may be used, by busy rating 0..10
	Points       Points
}

// Points are the thresholds of the busy rating. The first threshold of a list that is reached gives one point, the
// second two, and so on.
type Points struct {
	CPU        []float64 // percent
	Memory     []float64 // percent
	P95MS      []float64 // milliseconds
	ErrorShare []float64 // 0..1
	InFlight   []float64 // requests
}

// Tenants is about who the work is for.
type Tenants struct {
	DefaultCap int
}

// Jobs holds what submissions leave out, and their limits.
type Jobs struct {
	MaxAttempts      int
	BackoffFirst     time.Duration
	BackoffMax       time.Duration
	MaxInterruptions int
	PayloadLimit     Size
}

// Circuit is about definitions that keep failing.
type Circuit struct {
	Failures int
	Cooldown time.Duration
}

// Sentinel is about the files by which running commands show that they live.
type Sentinel struct {
	Interval   time.Duration
	Scan       time.Duration
	StaleAfter time.Duration
	DeadAfter  time.Duration
}

// Executor is about running commands.
type Executor struct {
	KillGrace time.Duration
}

// Recovery is about what is found after a restart.
type Recovery struct {
	Limit         time.Duration
	Watch         time.Duration
	Poll          time.Duration
	ResumedWithin time.Duration
	CleanupDelay  time.Duration
	CleanUnknown  bool
}

// Retention is how long things are kept after their end.
type Retention struct {
	Jobs       time.Duration
	Audit      time.Duration
	Workspaces time.Duration
}

// Alerts is where alerts are sent.
type Alerts struct {
	Webhook       string
	WebhookSecret string
	AllowHosts    []string
	JobFailed     bool // jobs that fail for good raise an alert; a program that wants none clears it after WithDefaults
}

// Telemetry is what the server tells about itself.
type Telemetry struct {
	OTLPEndpoint string
	Log          string // text or json
	LogLevel     string // debug, info, warn or error
}

// HTTP is about the HTTP server.
type HTTP struct {
	Hosts          []string // names by which it may be called, besides its own addresses
	TrustedProxies []string // addresses and networks of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed
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
		Tenants:  Tenants{DefaultCap: 25},
		Jobs:     Jobs{MaxAttempts: 5, BackoffFirst: time.Second, BackoffMax: 5 * time.Minute, MaxInterruptions: 20, PayloadLimit: 256 * KiB},
		Circuit:  Circuit{Failures: 5, Cooldown: 300 * time.Second},
		Sentinel: Sentinel{Interval: 30 * time.Second, Scan: time.Minute, StaleAfter: 2 * time.Minute, DeadAfter: 10 * time.Minute},
		Executor: Executor{KillGrace: 10 * time.Second},
		Recovery: Recovery{
			Limit: 30 * time.Minute, Watch: 5 * time.Minute, Poll: 10 * time.Second, ResumedWithin: time.Minute, CleanupDelay: 30 * time.Second,
		},
		Alerts:    Alerts{JobFailed: true},
		Retention: Retention{Jobs: 7 * day, Audit: 365 * day, Workspaces: 7 * day},
		Telemetry: Telemetry{Log: "text", LogLevel: "info"},
		complete:  true,
	}
}

// WithDefaults returns c complete: unless it was complete before, fields that are zero take their default. What stands
// under the data folder is derived from it unless it is set.
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

// under names a file in the data folder the way the folder was written, so that messages show what the user knows.
func under(data, name string) string { return strings.TrimRight(data, "/") + "/" + name }
