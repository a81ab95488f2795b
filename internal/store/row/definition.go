package row

import (
	"lessor"
	"lessor/internal/rules"
)

// Definition is what a manifest registers. The payload comes last, so that SQLite reads the other columns without it.
func Definition(c *Codec, d *rules.Definition) {
	Text(c, "id", &d.ID)
	ID(c, "tenant", &d.Tenant.UUID)
	Text(c, "module", &d.Module)
	Text(c, "version", &d.Version)
	Text(c, "schedule_type", &d.Schedule.Type)
	Text(c, "cron", &d.Schedule.Cron)
	Integer(c, "every_s", &d.Schedule.Seconds)
	Text(c, "zone", &d.Zone)
	Text(c, "handler", &d.Handler)
	Text(c, "lock_key", &d.LockKey)
	Text(c, "class", &d.Class)
	Integer(c, "priority", &d.Priority)
	Integer(c, "units", &d.Units)
	Integer(c, "max_attempts", &d.MaxAttempts)
	Millis(c, "timeout_ms", &d.Timeout)
	flag(c, "timeout_set", &d.TimeoutSet)
	Millis(c, "backoff_first_ms", &d.BackoffFirst)
	Millis(c, "backoff_max_ms", &d.BackoffMax)
	flag(c, "enabled", &d.Enabled)
	Text(c, "overlap", &d.Overlap)
	Text(c, "catch_up", &d.CatchUp)
	Millis(c, "catch_up_window_ms", &d.CatchUpWindow)
	Millis(c, "jitter_ms", &d.Jitter)
	Integer(c, "failures", &d.Failures)
	Millis(c, "cooldown_ms", &d.Cooldown)
	flag(c, "paused", &d.Paused)
	Integer(c, "anchor", &d.Anchor)
	Integer(c, "next_tick", &d.NextTick)
	Integer(c, "due_at", &d.DueAt)
	Integer(c, "created_at", &d.CreatedAt)
	Integer(c, "updated_at", &d.UpdatedAt)
	bytesOrNull(c, "payload", &d.Payload)
}

// Tick is what became of one tick, or of several from one instant to another.
func Tick(c *Codec, t *rules.TickRow) {
	Text(c, "definition", &t.Definition)
	Integer(c, "tick_at", &t.At)
	ID(c, "tenant", &t.Tenant.UUID)
	Text(c, "outcome", &t.Outcome)
	Text(c, "reason", &t.Reason)
	IDOrNull(c, "run", &t.Run.UUID)
	Integer(c, "from_at", &t.From)
	Integer(c, "to_at", &t.To)
	Integer(c, "count", &t.Count)
}

// Circuit is the circuit of a definition. PostgreSQL has a row for each, to lock it; SQLite only for one that is not
// idle.
func Circuit(c *Codec, k *rules.Circuit) {
	Text(c, "definition", &k.Definition)
	ID(c, "tenant", &k.Tenant.UUID)
	Text(c, "state", &k.State)
	Integer(c, "failures", &k.Failures)
	Integer(c, "opened_at", &k.OpenedAt)
	Integer(c, "retry_at", &k.RetryAt)
	IDOrNull(c, "trial", &k.Trial.UUID)
}

// Policy is what was set for a tenant (class "") or one of its classes.
func Policy(c *Codec, p *rules.Policy) {
	ID(c, "tenant", &p.Tenant.UUID)
	Text(c, "class", &p.Class)
	Integer(c, "weight", &p.Weight)
	Integer(c, "cap", &p.Cap)
	flag(c, "paused", &p.Paused)
	Text(c, "name", &p.Name)
}

// Handler is the schema that a handler's payloads must match.
func Handler(c *Codec, h *lessor.Handler) {
	Text(c, "id", &h.HandlerID)
	bytesOrNull(c, "schema", &h.Schema)
	Integer(c, "updated_at", &h.UpdatedAt)
}

// Alert is an alert as it is saved. Who acknowledged it is written apart, once.
func Alert(c *Codec, a *lessor.Alert) {
	ID(c, "id", &a.ID.UUID)
	Text(c, "kind", &a.Kind)
	Text(c, "subject", &a.Subject)
	ID(c, "tenant", &a.TenantID.UUID)
	Text(c, "message", &a.Message)
	Integer(c, "raised_at", &a.RaisedAt)
	Integer(c, "cleared_at", &a.ClearedAt)
	Integer(c, "count", &a.Count)
}

// WholeAlert is an alert as it is read.
func WholeAlert(c *Codec, a *lessor.Alert) {
	Alert(c, a)
	Integer(c, "acknowledged_at", &a.AcknowledgedAt)
	textOrNil(c, "acknowledged_by", &a.AcknowledgedBy)
}

// Audited is an entry of the audit.
func Audited(c *Codec, e *lessor.Audited) {
	ID(c, "id", &e.ID.UUID)
	Integer(c, "at", &e.At)
	Text(c, "actor", &e.Actor)
	Text(c, "action", &e.Action)
	Text(c, "object", &e.Object)
	Text(c, "trace_id", &e.TraceID)
	bytesOrNull(c, "before", &e.Before)
	bytesOrNull(c, "after", &e.After)
}
