package rules

import (
	"encoding/json"
	"fmt"
	"time"

	"lessor"
	"lessor/internal/cron"
)

// The limits of a definition, and its defaults.
const (
	minName         = 3
	maxName         = 120
	maxEveryS       = 100 * 366 * 24 * 60 * 60 // longer is a mistake in units
	maxTimeoutS     = 60 * 60
	maxDefinedRunS  = 7 * 24 * 60 * 60
	maxWindowS      = 7 * 24 * 60 * 60
	maxJitterS      = 24 * 60 * 60
	maxFailures     = 1000
	maxCooldownS    = 30 * 24 * 60 * 60
	maxZone         = 80
	defaultAttempts = 5
	defaultTimeoutS = 300
	defaultWindowS  = 3600
)

// Definition is a registered schedule with its handler, and its current state.
type Definition struct {
	ID            string
	Tenant        lessor.TenantID
	Module        string // "" = none
	Version       string // of the manifest; "" = none
	Schedule      lessor.Schedule
	Zone          string
	Handler       string
	LockKey       string
	Class         string
	Priority      lessor.Priority
	Units         int
	MaxAttempts   int
	Timeout       time.Duration
	TimeoutSet    bool // by timeoutSeconds, not maxRuntimeSeconds or the default
	BackoffFirst  time.Duration
	BackoffMax    time.Duration
	Enabled       bool
	Overlap       lessor.Overlap
	CatchUp       lessor.CatchUp
	CatchUpWindow time.Duration
	Jitter        time.Duration
	Failures      int // in a row, that open the circuit
	Cooldown      time.Duration
	Payload       json.RawMessage

	Paused    bool
	Anchor    lessor.Instant // intervals count from here
	NextTick  lessor.Instant // the next to decide about; 0 = none: paused or disabled
	DueAt     lessor.Instant // NextTick with its jitter
	CreatedAt lessor.Instant
	UpdatedAt lessor.Instant
}

// DefineConfig holds the bounds and defaults of definitions.
type DefineConfig struct {
	Submit   SubmitConfig
	Failures int
	Cooldown time.Duration
	// Zone finds a time zone by its IANA name.
	Zone func(name string) (*time.Location, error)
}

// Define turns an envelope into a definition, with defaults applied, or refuses it. If fields are refused, the
// definition has the others. wall is the tenant to which the caller's token is restricted, nil for none; prefix goes
// before the names of wrong fields ("jobs[3]." in a manifest).
func Define(e *lessor.Envelope, wall *lessor.TenantID, cfg DefineConfig, prefix string) (*Definition, error) {
	c := check{prefix: prefix}
	for _, f := range []struct {
		name  string
		there bool
	}{
		{"jobId", e.JobID != nil},
		{"tenantId", e.TenantID != nil || wall != nil},
		{"handlerId", e.HandlerID != nil},
		{"lockKey", e.LockKey != nil},
		{"schedule", e.Schedule != nil},
	} {
		c.require(f.name, f.there)
	}
	d := &Definition{
		ID:          c.text("jobId", e.JobID, minName, maxName, ""),
		Handler:     c.text("handlerId", e.HandlerID, minName, maxName, ""),
		LockKey:     c.text("lockKey", e.LockKey, minLockKey, maxLockKey, ""),
		Class:       c.text("fairnessClass", e.FairnessClass, 1, maxClass, defaultClass),
		MaxAttempts: int(c.number("maxAttempts", e.MaxAttempts, 1, maxAttempts, defaultAttempts)),
		Timeout:     c.runtime(e),
		TimeoutSet:  e.TimeoutSeconds != nil,
		Module:      c.text("moduleId", e.ModuleID, 1, maxName, ""),
		Paused:      e.Paused != nil && *e.Paused,
		Enabled:     e.IsEnabled == nil || *e.IsEnabled, Priority: c.priority(e.Priority),
		Units: c.units("requestedUnits", e.RequestedUnits, cfg.Submit.FitUnits),
		Zone:  c.text("timezone", e.Timezone, 1, maxZone, "UTC"),
		Overlap: oneOf(&c, "overlap", e.Overlap, lessor.OverlapSkip, lessor.OverlapQueueOne, lessor.OverlapAllow,
			lessor.OverlapCancelPrevious),
		CatchUp:       oneOf(&c, "catchUp", e.CatchUp, lessor.CatchUpLatest, lessor.CatchUpNone, lessor.CatchUpAll),
		CatchUpWindow: c.seconds("catchUpWindowSeconds", e.CatchUpWindowSeconds, 0, maxWindowS, defaultWindowS),
		Jitter:        c.seconds("jitterSeconds", e.JitterSeconds, 0, maxJitterS, 0),
		Payload:       c.object("payload", e.Payload, cfg.Submit.PayloadLimit),
		Failures:      cfg.Failures, Cooldown: cfg.Cooldown,
	}
	var err error
	if d.Tenant, err = c.owner(e.TenantID, wall); err != nil {
		return nil, err
	}
	c.circuit(d, e.Circuit)
	d.BackoffFirst, d.BackoffMax = c.definitionBackoff(e.Backoff, cfg.Submit)
	c.schedule(d, e.Schedule, cfg.Zone)
	return d, c.err()
}

func (c *check) seconds(field string, v *int64, least, most, def int64) time.Duration {
	return time.Duration(c.number(field, v, least, most, def)) * time.Second
}

// runtime returns the longest run of an attempt. An envelope of a program that knows only timeoutSeconds keeps its
// meaning, whatever was added to it.
func (c *check) runtime(e *lessor.Envelope) time.Duration {
	longest := c.seconds("maxRuntimeSeconds", e.MaxRuntimeSeconds, 1, maxDefinedRunS, defaultTimeoutS)
	if e.TimeoutSeconds == nil {
		return longest
	}
	return c.seconds("timeoutSeconds", e.TimeoutSeconds, 1, maxTimeoutS, 0)
}

// owner returns the tenant of a definition: the named one, or the one to which the caller is restricted.
func (c *check) owner(v *string, wall *lessor.TenantID) (lessor.TenantID, error) {
	if v == nil {
		if wall == nil {
			return lessor.TenantID{}, nil
		}
		return *wall, nil
	}
	before := len(c.fields)
	u := lessor.TenantID{}
	parsed, err := lessor.ParseUUID(*v)
	switch u.UUID = parsed; {
	case err != nil:
		c.fail("tenantId", "%v", err)
	case u.IsZero():
		c.fail("tenantId", "must not be the nil uuid: a definition belongs to a tenant")
	}
	if wall != nil && len(c.fields) == before && u != *wall {
		return u, &lessor.Error{Code: lessor.CodeForbidden, Detail: "this token is for another tenant"}
	}
	return u, nil
}

func (c *check) circuit(d *Definition, ask *lessor.CircuitAsk) {
	if ask == nil {
		return
	}
	d.Failures = int(c.number("circuit.failures", ask.Failures, 1, maxFailures, int64(d.Failures)))
	// the server's own, which may be finer than a second, comes back as it was shown
	if ask.CooldownSeconds != nil && *ask.CooldownSeconds != int64(d.Cooldown/time.Second) {
		d.Cooldown = c.seconds("circuit.cooldownSeconds", ask.CooldownSeconds, 1, maxCooldownS, 0)
	}
}

func (c *check) definitionBackoff(ask *lessor.DefinitionBackoffAsk, cfg SubmitConfig) (first, most time.Duration) {
	if ask == nil {
		return cfg.BackoffFirst, cfg.BackoffMax
	}
	return c.bounds("backoff.firstMs", ask.FirstMS, "backoff.maxMs", ask.MaxMS, cfg)
}

func (c *check) schedule(d *Definition, ask *lessor.ScheduleAsk, zone func(string) (*time.Location, error)) {
	if _, err := zone(d.Zone); err != nil || !cron.NamesZone(d.Zone) {
		c.fail("timezone", "must be the IANA name of a time zone, like Europe/Berlin, not %q", d.Zone)
	}
	if ask == nil {
		return
	}
	if c.require("schedule.type", ask.Type != nil); ask.Type == nil {
		return
	}
	d.Schedule = lessor.Schedule{Type: *ask.Type}
	switch *ask.Type {
	case lessor.ScheduleCron:
		c.require("schedule.cron", ask.Cron != nil)
		before := len(c.fields)
		d.Schedule.Cron = c.text("schedule.cron", ask.Cron, minName, maxName, "")
		if ask.Seconds != nil {
			c.fail("schedule.seconds", "is for the type interval")
		}
		if ask.Cron == nil || len(c.fields) > before {
			return
		}
		if _, err := cron.Parse(d.Schedule.Cron, d.ID); err != nil {
			c.fail("schedule.cron", "%v", err)
		}
	case lessor.ScheduleInterval:
		c.require("schedule.seconds", ask.Seconds != nil)
		d.Schedule.Seconds = c.number("schedule.seconds", ask.Seconds, 1, maxEveryS, 0)
		if ask.Cron != nil {
			c.fail("schedule.cron", "is for the type cron")
		}
	default:
		c.fail("schedule.type", "must be cron or interval, not %q", *ask.Type)
	}
}

// Inherit gives d, which is stored by itself, what old has and its envelope leaves out; nil is no old definition. It
// refuses the id of another tenant, and another module.
func Inherit(d *Definition, e *lessor.Envelope, old *Definition) error {
	if err := d.inherit(e, old); err != nil {
		return err
	}
	module := ""
	if old != nil {
		module, d.Version = old.Module, old.Version
	}
	if d.Module != "" && d.Module != module {
		return WrongField("moduleId", "only a manifest sets it: send the definition's own, or leave it out")
	}
	d.Module = module
	return nil
}

func (d *Definition) inherit(e *lessor.Envelope, old *Definition) error {
	switch {
	case old == nil:
	case old.Tenant != d.Tenant:
		return &lessor.Error{
			Code:   lessor.CodeConflict,
			Detail: fmt.Sprintf("the id %s is taken by another tenant", d.ID),
		}
	default:
		if e.Paused == nil {
			d.Paused = old.Paused
		}
		d.keepEdited(e, old)
	}
	return nil
}

// keepEdited lets a changed maxRuntimeSeconds count. A caller that read a definition without timeoutSeconds saw the
// default there, and may send it back beside the maxRuntimeSeconds that it has changed.
func (d *Definition) keepEdited(e *lessor.Envelope, old *Definition) {
	shown := e.TimeoutSeconds != nil && *e.TimeoutSeconds == defaultTimeoutS && !old.TimeoutSet
	if shown && e.MaxRuntimeSeconds != nil {
		d.Timeout, d.TimeoutSet = time.Duration(*e.MaxRuntimeSeconds)*time.Second, false
	}
}

// Replace gives d the state of old, which it replaces. Intervals count from now if the schedule changed; the time zone
// does not affect them. Ticks of a time in which old was paused or disabled are not caught up.
func Replace(d, old *Definition, next func(*Definition) Ticker, now lessor.Instant) {
	d.CreatedAt, d.UpdatedAt, d.Anchor = old.CreatedAt, now, old.Anchor
	changed := d.Schedule != old.Schedule || d.Zone != old.Zone && d.Schedule.Type == lessor.ScheduleCron
	if changed {
		d.Anchor = now
	}
	if changed || old.NextTick == 0 || !d.Ticking() {
		setTickAfter(d, next(d), now)
		return
	}
	d.setNextTick(old.NextTick, next(d))
}

// Begin sets the state of a new definition.
func Begin(d *Definition, next func(*Definition) Ticker, now lessor.Instant) {
	d.CreatedAt, d.UpdatedAt, d.Anchor = now, now, now
	setTickAfter(d, next(d), now)
}

// SetPaused pauses or resumes a definition, and reports whether that changed it. Ticks of a pause are not caught up.
func SetPaused(d *Definition, paused bool, next Ticker, now lessor.Instant) bool {
	if d.Paused == paused {
		return false
	}
	d.Paused, d.UpdatedAt = paused, now
	setTickAfter(d, next, now)
	return true
}

// Ticking reports whether a definition has ticks.
func (d *Definition) Ticking() bool { return d.Enabled && !d.Paused }
