package row

import (
	"cmp"
	"encoding/hex"
	"encoding/json"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// Lane is what makes jobs alike for a grant.
func Lane(c *Codec, l *rules.Lane) {
	ID(c, "tenant", &l.Tenant.UUID)
	Text(c, "class", &l.Class)
	Integer(c, "priority", &l.Priority)
	Text(c, "type", &l.Type)
	flag(c, "is_unique", &l.Unique)
	Integer(c, "units", &l.Units)
	Text(c, "lock_key", &l.LockKey)
	Text(c, "definition", &l.Definition)
}

// Job is a job as it was submitted. Its lane has a row of its own, and its body hash stands beside its key. The payload
// comes last, so that SQLite reads the other columns without it.
func Job(c *Codec, s *rules.Spec) {
	ID(c, "id", &s.ID.UUID)
	Integer(c, "lane", &s.LaneID)
	Integer(c, "seq", &s.Seq)
	tags(c, "tags", &s.Tags)
	TextOrNull(c, "idempotency_key", &s.IdempotencyKey)
	Millis(c, "max_runtime_ms", &s.MaxRuntime)
	Integer(c, "max_attempts", &s.MaxAttempts)
	Millis(c, "backoff_first_ms", &s.BackoffFirst)
	Millis(c, "backoff_max_ms", &s.BackoffMax)
	Integer(c, "run_at", &s.RunAt)
	Integer(c, "tick_at", &s.TickAt)
	trace(c, "trace_id", s)
	Text(c, "actor", &s.Actor)
	Integer(c, "created_at", &s.CreatedAt)
	bytesOrNull(c, "payload", &s.Payload)
}

const noTags = "[]"

// tags stores a list as JSON, which also holds characters that a text of PostgreSQL cannot.
func tags(c *Codec, name string, v *[]string) {
	s := noTags
	if c.to != nil && len(*v) > 0 {
		b, err := json.Marshal(*v)
		if err != nil {
			panic(err) // strings always marshal
		}
		s = string(b)
	}
	Text(c, name, &s)
	if c.from != nil {
		var err error
		if *v, err = ParseTags(s); err != nil && c.Err == nil {
			c.Err = err
		}
	}
}

// ParseTags reads the column tags.
func ParseTags(s string) (tags []string, err error) {
	if s != noTags {
		err = json.Unmarshal([]byte(s), &tags)
	}
	return tags, err
}

func trace(c *Codec, name string, s *rules.Spec) {
	if !c.ImpliedTrace {
		Text(c, name, &s.TraceID)
		return
	}
	var buf [2 * len(lessor.UUID{})]byte
	implied, stored := hex.AppendEncode(buf[:0], s.ID.UUID[:]), s.TraceID
	if stored == string(implied) {
		stored = ""
	}
	Text(c, name, &stored)
	if c.from != nil {
		s.TraceID = cmp.Or(stored, string(implied))
	}
}

// OpenRun lists a new job under its definition.
func OpenRun(c *Codec, s *rules.Spec) {
	open := true
	Text(c, "definition", &s.Lane.Definition)
	ID(c, "job", &s.ID.UUID)
	flag(c, "open", &open)
}

// Key is an idempotency key and the job that holds it.
func Key(c *Codec, k *scheduler.JobKey) {
	ID(c, "tenant", &k.Tenant.UUID)
	Text(c, "key", &k.Key.Key)
	ID(c, "job", &k.Job.UUID)
	hash(c, "body_hash", &k.BodyHash)
}

// Turn is the standing of a job, which travels with it through all places. Only PostgreSQL keeps cohorts, in columns of
// its own.
func Turn(c *Codec, t *rules.Turn) {
	ID(c, "job", &t.Job.UUID)
	Integer(c, "lane", &t.Lane)
	Integer(c, "seq", &t.Seq)
	Integer(c, "attempt", &t.Attempt)
	Integer(c, "max_attempts", &t.MaxAttempts)
	Integer(c, "interruptions", &t.Interruptions)
	Integer(c, "fence", &t.Fence)
	Integer(c, "steps", &t.Steps)
	Integer(c, "queued_at", &t.QueuedAt)
}

// Waiting is a job that waits for its time or for a retry.
func Waiting(c *Codec, w *scheduler.Waiting) {
	Turn(c, &w.Turn)
	Wait(c, &w.Wait)
}

// Wait is what stands behind the turn of a job that waits.
func Wait(c *Codec, w *rules.Wait) {
	Integer(c, "until", &w.Until)
	Text(c, "state", &w.State)
}

// Lease is what never changes in a lease.
func Lease(c *Codec, h *rules.Held) {
	ID(c, "id", &h.ID.UUID)
	Turn(c, &h.Turn)
	ID(c, "tenant", &h.Tenant.UUID)
	TextOrNull(c, "lock_key", &h.LockKey)
	Integer(c, "units", &h.Units)
	Text(c, "worker", &h.Worker)
	TextOrNull(c, "request_id", &h.RequestID)
	TextOrNull(c, "workspace_id", &h.WorkspaceID)
	Millis(c, "max_runtime_ms", &h.MaxRuntime)
	Integer(c, "issued_at", &h.IssuedAt)
	TextOrNull(c, "taker", &h.Taker)
	IDOrNull(c, "token", &h.Token.UUID)
	flag(c, "bound", &h.Bound)
}

// Beat is what changes in a lease. SQLite keeps it in a table of its own, where a lease that is as it was granted has
// no row; PostgreSQL keeps it in the lease.
func Beat(c *Codec, h *rules.Held) {
	Integer(c, "expires_at", &h.ExpiresAt)
	Integer(c, "first_beat_at", &h.FirstBeatAt)
	Integer(c, "beat_at", &h.BeatAt)
	Millis(c, "ttl_ms", &h.TTL)
	Integer(c, "cancel_at", &h.CancelAt)
	Integer(c, "watch_until", &h.WatchUntil)
	Integer(c, "reattached", &h.Reattached)
	journalSize(c, &h.Journal)
}

func journalSize(c *Codec, s *rules.JournalSize) {
	Integer(c, "journal_entries", &s.Entries)
	Integer(c, "journal_bytes", &s.Bytes)
}

// Entry is an entry of a job's journal, without the job.
func Entry(c *Codec, e *rules.Entry) {
	Integer(c, "n", &e.Size.Entries)
	Text(c, "key", &e.Key)
	Text(c, "kind", &e.Kind)
	Integer(c, "at", &e.At)
	Integer(c, "fence", &e.Fence)
	Integer(c, "bytes", &e.Size.Bytes)
	bytesOrNull(c, "data", &e.Data)
	e.N = e.Size.Entries
}

// Attempt is an attempt after which the job went on.
func Attempt(c *Codec, a *rules.Attempt) {
	Turn(c, &a.Turn)
	ID(c, "lease", &a.Lease.UUID)
	end(c, a)
}

// Done is a job that has ended. Its columns begin like those of an attempt: it is the record of the last one too. A job
// that ended without a lease has null there.
func Done(c *Codec, d *rules.Done) {
	Turn(c, &d.Attempt.Turn)
	IDOrNull(c, "lease", &d.Attempt.Lease.UUID)
	end(c, &d.Attempt)
	Text(c, "state", &d.State)
	bytesOrNull(c, "result", &d.Result)
}

func end(c *Codec, a *rules.Attempt) {
	Text(c, "worker", &a.Worker)
	Integer(c, "granted_at", &a.GrantedAt)
	Integer(c, "first_beat_at", &a.FirstBeatAt)
	Integer(c, "ended_at", &a.EndedAt)
	Text(c, "outcome", &a.Outcome)
	Text(c, "said", &a.Said)
	Text(c, "reason", &a.Reason)
	Text(c, "actor", &a.Actor)
	Text(c, "error", &a.Error)
	TextOrNull(c, "taker", &a.Taker)
}

// Failure is what a standing needs of the last attempt that failed.
func Failure(c *Codec, a *rules.Attempt) {
	Text(c, "outcome", &a.Outcome)
	Text(c, "reason", &a.Reason)
	Text(c, "error", &a.Error)
	ID(c, "lease", &a.Lease.UUID)
}

// LeaseEnd is how a lease ended: columns of an attempt and of its lane.
func LeaseEnd(c *Codec, e *scheduler.LeaseEnd) {
	Text(c, "worker", &e.Worker)
	ID(c, "lane.tenant", &e.Tenant.UUID)
	Text(c, "outcome", &e.Outcome)
	Text(c, "said", &e.Said)
	Text(c, "reason", &e.Reason)
}

// Note is an entry of the record that no attempt tells.
func Note(c *Codec, n *rules.Note) {
	ID(c, "job", &n.Job.UUID)
	Integer(c, "fence", &n.Fence)
	flag(c, "held", &n.Held)
	Integer(c, "at", &n.At)
	Text(c, "from_state", &n.From)
	Text(c, "to_state", &n.To)
	Text(c, "actor", &n.Actor)
	Text(c, "reason", &n.Reason)
	IDOrNull(c, "lease", &n.Lease.UUID)
	Integer(c, "attempt", &n.Attempt)
	Integer(c, "queued_at", &n.QueuedAt)
}

// Token is a token as it is stored: its hash. The zero tenant is a tenant like others, and not the same as none.
func Token(c *Codec, t *scheduler.Token) {
	ID(c, "id", &t.ID.UUID)
	hash(c, "hash", &t.Hash)
	Text(c, "name", &t.Name)
	Text(c, "role", &t.Role)
	idOrNil(c, "tenant", &t.Tenant)
	Integer(c, "created_at", &t.CreatedAt)
	Integer(c, "expires_at", &t.ExpiresAt)
}

// Listed is a job in a list, and its standing. In a list that finds jobs by their ids the place may be rules.Nowhere,
// and the standing not known.
type Listed struct {
	Job   lessor.JobID
	Lane  rules.LaneID
	Seq   int64
	Place rules.Place
	State lessor.State
	Fence int64
}

// List is a row of a list. Its columns are computed.
func List(c *Codec, l *Listed) {
	ID(c, "job", &l.Job.UUID)
	Integer(c, "lane", &l.Lane)
	Integer(c, "seq", &l.Seq)
	Integer(c, "place", &l.Place)
	Text(c, "state", &l.State)
	Integer(c, "fence", &l.Fence)
}
