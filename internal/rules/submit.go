package rules

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"lessor"
)

// The limits of a submission.
const (
	maxType      = 120
	maxKey       = 200
	minLockKey   = 3
	maxLockKey   = 200
	maxTags      = 20
	maxTag       = 80
	maxClass     = 80
	maxAttempts  = 50
	maxRuntimeS  = 366 * 24 * 60 * 60 // longer is a mistake in units
	maxBackoff   = 30 * 24 * time.Hour
	maxStart     = 366 * 24 * time.Hour // the longest delay_ms; a job for later has a run_at
	defaultClass = "default"
)

// SubmitConfig holds the bounds and defaults of submissions.
type SubmitConfig struct {
	MaxAttempts  int
	BackoffFirst time.Duration
	BackoffMax   time.Duration
	PayloadLimit int
	FitUnits     int // total − reserve: a job that needs more can never run
}

// Submit turns a submission into a job's spec, with defaults applied, or refuses it. The spec of a submission that is
// refused for its fields has the fields that are right. wall is the tenant to which the caller's token is restricted,
// nil for none; prefix goes before the names of wrong fields ("jobs[3]." in a batch).
func Submit(sub *lessor.Submission, wall *lessor.TenantID, cfg SubmitConfig, prefix string) (*Spec, error) {
	c := check{prefix: prefix}
	c.require("type", sub.Type != nil)
	tenant := c.tenant(sub.TenantID)
	if wall != nil && sub.TenantID != nil && tenant != *wall {
		return nil, &lessor.Error{Code: lessor.CodeForbidden, Detail: "this token is for another tenant"}
	}
	if wall != nil {
		tenant = *wall
	}
	s := &Spec{
		Lane: Lane{
			Tenant: tenant, Type: c.text("type", sub.Type, 1, maxType, ""),
			Class:    c.text("fairness_class", sub.FairnessClass, 1, maxClass, defaultClass),
			Priority: c.priority(sub.Priority),
			Unique:   sub.Unique != nil && *sub.Unique,
			Units:    c.units("requested_units", sub.RequestedUnits, math.MaxInt),
			LockKey:  c.text("lock_key", sub.LockKey, minLockKey, maxLockKey, ""),
		},
		Payload: c.object("payload", sub.Payload, cfg.PayloadLimit), Tags: c.tags(sub.Tags),
		IdempotencyKey: c.text("idempotency_key", sub.IdempotencyKey, 1, maxKey, ""),
		MaxRuntime:     time.Duration(c.number("max_runtime_s", sub.MaxRuntimeS, 1, maxRuntimeS, 0)) * time.Second,
		MaxAttempts:    int(c.number("max_attempts", sub.MaxAttempts, 1, maxAttempts, int64(cfg.MaxAttempts))),
		RunAt:          c.instant("run_at", sub.RunAt), BackoffFirst: cfg.BackoffFirst, BackoffMax: cfg.BackoffMax,
		Delay: c.millis("delay_ms", sub.DelayMS, 0, maxStart, 0),
	}
	if sub.RunAt != nil && sub.DelayMS != nil {
		c.fail("delay_ms", "must not be given together with run_at")
	}
	if ask := sub.Backoff; ask != nil {
		s.BackoffFirst, s.BackoffMax = c.bounds("backoff.first_ms", ask.FirstMS, "backoff.max_ms", ask.MaxMS, cfg)
	}
	if err := c.err(); err != nil {
		return s, err
	}
	if s.IdempotencyKey != "" {
		s.BodyHash = bodyHash(s)
	}
	return s, nil
}

// Fits refuses a job that needs more units than can ever be free. That may change, so it does not concern a job that is
// known by its key.
func Fits(s *Spec, cfg SubmitConfig, prefix string) error {
	c := check{prefix: prefix}
	c.fits("requested_units", int64(s.Lane.Units), cfg.FitUnits)
	return c.err()
}

// Payload returns a payload as sent: a JSON object of at most limit bytes. Absent gives {}.
func Payload(raw json.RawMessage, field string, limit int) (json.RawMessage, error) {
	var c check
	payload := c.object(field, raw, limit)
	return payload, c.err()
}

// object returns a JSON object as sent, or nil if it is none; absent gives {}.
func (c *check) object(field string, raw json.RawMessage, limit int) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return json.RawMessage("{}")
	}
	if raw[0] != '{' {
		c.add(lessor.CodeInvalidRequest, "a field has the wrong type", field, "must be an object")
		return nil
	}
	c.size(field, len(raw), limit)
	return raw
}

func (c *check) priority(v *string) lessor.Priority {
	if v == nil {
		return lessor.Normal
	}
	p, ok := lessor.ParsePriority(*v)
	if !ok {
		c.fail("priority", "must be high, normal, low or background, not %q", *v)
	}
	return p
}

func (c *check) units(field string, v *int64, fit int) int {
	if v == nil {
		return 1
	}
	if *v < 1 {
		c.fail(field, "must be at least 1, not %d", *v)
	}
	c.fits(field, *v, fit)
	return int(*v)
}

func (c *check) fits(field string, units int64, fit int) {
	if units > int64(fit) {
		c.fail(field, "can never fit: %d units are asked for and total less reserve is %d", units, fit)
	}
}

func (c *check) tags(tags []string) []string {
	if len(tags) > maxTags {
		c.fail("tags", "must be at most %d, not %d", maxTags, len(tags))
		return nil
	}
	if len(tags) == 0 {
		return nil // absent and empty are the same body
	}
	for i, t := range tags {
		c.text(fmt.Sprintf("tags[%d]", i), &t, 1, maxTag, "")
	}
	return tags
}

func (c *check) tenant(v *string) lessor.TenantID {
	if v == nil {
		return lessor.TenantID{}
	}
	u, err := lessor.ParseUUID(*v)
	if err != nil {
		c.fail("tenant_id", "%v", err)
	}
	return lessor.TenantID{UUID: u}
}

func (c *check) instant(field string, v *string) lessor.Instant {
	if v == nil {
		return 0
	}
	t, err := time.Parse(time.RFC3339, *v)
	t = t.UTC() // the zone can move it into a year of five digits
	if err != nil || t.Year() < 1970 || t.Year() > 9999 {
		c.fail(field, "must be a time like 2026-02-06T20:10:00.000Z, not %q", *v)
		return 0
	}
	return lessor.At(t)
}

// bounds returns the bounds of a backoff. A missing bound is the server's, adjusted to the given one.
func (c *check) bounds(
	firstField string, firstMS *int64, mostField string, mostMS *int64, cfg SubmitConfig,
) (first, most time.Duration) {
	first = c.millis(firstField, firstMS, 0, maxBackoff, cfg.BackoffFirst)
	if mostMS == nil {
		return first, max(cfg.BackoffMax, first)
	}
	most = c.millis(mostField, mostMS, 0, maxBackoff, 0)
	if firstMS == nil {
		first = min(first, most)
	}
	if first > most {
		c.fail(mostField, "must not be less than %s (%d)", strings.TrimPrefix(firstField, "backoff."),
			first.Milliseconds())
	}
	return first, most
}

// bodyHash returns the same hash for submissions that are equal after defaults. Payloads are compared as values: spaces
// and the order of fields do not count, and numbers count as written. A delay does not count: a submission that is
// repeated later means the same job, and its first time stands.
func bodyHash(s *Spec) [32]byte {
	h := sha256.New()
	enc := json.NewEncoder(h)
	l := s.Lane
	_ = enc.Encode([]any{
		l.Class, l.Priority, l.Type, l.Unique, l.Units, l.LockKey, string(canonical(s.Payload)), s.Tags, s.MaxRuntime,
		s.MaxAttempts,
		s.BackoffFirst, s.BackoffMax, s.RunAt,
	}) // a hash accepts everything, and every value here can be encoded
	return [32]byte(h.Sum(nil))
}

// canonical returns JSON with sorted fields, without spaces, and with numbers as they were written.
func canonical(raw json.RawMessage) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return raw
	}
	b, _ := json.Marshal(v) // what was read can be written
	return b
}
