package httpapi

import (
	stdjson "encoding/json"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"lessor"
)

// appender is an answer that is sent so often that it has an encoder of its own, without reflection. It gives the same
// bytes as json.Marshal with the options of encoding: TestAppendersWriteWhatTheEncoderWrites.
type appender interface{ appendTo(b []byte) []byte }

// buffers are those of answers. A larger one is left to the garbage collector.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

const maxBuffer = 1 << 20

// encode writes v as JSON behind b.
func encode(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case appender:
		return v.appendTo(b), nil
	case lessor.Job:
		return appendJob(b, &v), nil
	case lessor.HeartbeatAnswer:
		return append(appendBeat(append(b, '{'), &v), '}'), nil
	case lessor.JournalAnswer:
		return appendJournaled(b, &v), nil
	}
	whole, err := json.Marshal(v, encoding)
	return append(b, whole...), err
}

func (g granted) appendTo(b []byte) []byte {
	b = append(b, `{"denied":false,"lease":`...)
	b = appendLease(b, &g.Lease)
	b = append(b, `,"job":`...)
	return append(appendJob(b, &g.Job), '}')
}

func (g grantedAll) appendTo(b []byte) []byte {
	b = append(b, `{"denied":false,"grants":[`...)
	for i := range g.Grants {
		b = append(between(b, i), `{"lease":`...)
		b = appendLease(b, &g.Grants[i].Lease)
		b = append(b, `,"job":`...)
		b = append(appendJob(b, &g.Grants[i].Job), '}')
	}
	return append(b, "]}"...)
}

// denied is a denial as an answer.
type denied lessor.Denial

func (d denied) appendTo(b []byte) []byte {
	b = appendBool(append(b, `{"denied":`...), d.Denied)
	b = appendText(append(b, `,"code":`...), string(d.Code))
	b = appendText(append(b, `,"reason":`...), d.Reason)
	return append(appendInt(append(b, `,"retry_after_ms":`...), d.RetryAfterMS), '}')
}

func (s submitted) appendTo(b []byte) []byte {
	b = append(b, `{"jobs":[`...)
	for i := range s.Jobs {
		b = appendJob(between(b, i), &s.Jobs[i])
	}
	return append(b, "]}"...)
}

func (s submittedIDs) appendTo(b []byte) []byte {
	b = append(b, `{"job_ids":[`...)
	for i := range s.JobIDs {
		b = appendID(between(b, i), s.JobIDs[i].UUID)
	}
	return append(b, "]}"...)
}

func (r results[T]) appendTo(b []byte) []byte {
	return append(appendResults(append(b, `{"results":`...), r.Results), '}')
}

func appendResults[T appender](b []byte, rs []result[T]) []byte {
	b = append(b, '[')
	for i := range rs {
		if b = between(b, i); rs[i].refused != nil {
			b = rs[i].refused.appendTo(b)
		} else {
			b = (*rs[i].ok).appendTo(b)
		}
	}
	return append(b, ']')
}

func appendJournaled(b []byte, a *lessor.JournalAnswer) []byte {
	b = append(appendBeat(append(b, '{'), &a.HeartbeatAnswer), `,"numbers":[`...)
	for i, n := range a.Numbers {
		b = appendInt(between(b, i), int64(n))
	}
	return append(b, "]}"...)
}

func (l leaseExtended) appendTo(b []byte) []byte {
	b = appendText(append(b, `{"lease_id":`...), l.LeaseID)
	return append(appendBeat(append(b, ','), &l.HeartbeatAnswer), '}')
}

func (l leaseEnded) appendTo(b []byte) []byte {
	b = appendText(append(b, `{"lease_id":`...), l.LeaseID)
	return append(appendBool(append(b, `,"ok":`...), l.OK), '}')
}

func (l leaseRefused) appendTo(b []byte) []byte {
	b = appendText(append(b, `{"lease_id":`...), l.LeaseID)
	b = appendBool(append(b, `,"ok":`...), l.OK)
	b = appendInt(append(b, `,"status":`...), int64(l.Status))
	b = appendText(append(b, `,"code":`...), string(l.Code))
	return append(appendOptional(append(b, `,"ended_reason":`...), l.EndedReason), '}')
}

func (d done) appendTo(b []byte) []byte { return append(appendBool(append(b, `{"ok":`...), d.OK), '}') }

// appendBeat writes the fields of an answered heartbeat.
func appendBeat(b []byte, a *lessor.HeartbeatAnswer) []byte {
	b = appendBool(append(b, `"ok":`...), a.OK)
	b = appendInstant(append(b, `,"expires_at":`...), a.ExpiresAt)
	b = appendInt(append(b, `,"heartbeat_after_ms":`...), a.HeartbeatAfterMS)
	b = appendBool(append(b, `,"cancel_requested":`...), a.CancelRequested)
	if b = append(b, `,"messages":`...); len(a.Messages) == 0 {
		return append(b, "[]"...)
	}
	return appendRare(b, &a.Messages)
}

func appendLease(b []byte, l *lessor.Lease) []byte {
	b = appendID(append(b, `{"lease_id":`...), l.ID.UUID)
	b = appendID(append(b, `,"job_id":`...), l.JobID.UUID)
	if l.Type != "" {
		b = appendText(append(b, `,"type":`...), l.Type)
	}
	b = appendText(append(b, `,"worker_id":`...), l.WorkerID)
	b = appendInt(append(b, `,"capacity_units":`...), int64(l.CapacityUnits))
	b = appendInstant(append(b, `,"issued_at":`...), l.IssuedAt)
	b = appendInstant(append(b, `,"expires_at":`...), l.ExpiresAt)
	b = appendInstant(append(b, `,"last_heartbeat":`...), l.LastHeartbeat)
	b = appendInt(append(b, `,"fence":`...), l.Fence)
	b = appendInt(append(b, `,"ttl_ms":`...), l.TTLMS)
	return append(appendInt(append(b, `,"heartbeat_after_ms":`...), l.HeartbeatAfterMS), '}')
}

func appendJob(b []byte, j *lessor.Job) []byte {
	b = appendID(append(b, `{"job_id":`...), j.ID.UUID)
	b = appendText(append(b, `,"type":`...), j.Type)
	b = appendText(append(b, `,"priority":`...), j.Priority.String())
	b = appendInt(append(b, `,"requested_units":`...), int64(j.RequestedUnits))
	b = appendBool(append(b, `,"unique":`...), j.Unique)
	b = appendText(append(b, `,"state":`...), string(j.State))
	b = appendRaw(append(b, `,"payload":`...), j.Payload)
	b = appendOptional(append(b, `,"idempotency_key":`...), j.IdempotencyKey)
	b = append(b, `,"tags":[`...)
	for i, t := range j.Tags {
		b = appendText(between(b, i), t)
	}
	b = appendOptionalInt(append(b, `],"max_runtime_s":`...), j.MaxRuntimeS)
	if b = append(b, `,"lease_id":`...); j.LeaseID == nil {
		b = append(b, "null"...)
	} else {
		b = appendID(b, j.LeaseID.UUID)
	}
	b = appendInstant(append(b, `,"created_at":`...), j.CreatedAt)
	b = appendInstant(append(b, `,"updated_at":`...), j.UpdatedAt)
	b = appendID(append(b, `,"tenant_id":`...), j.TenantID.UUID)
	b = appendText(append(b, `,"fairness_class":`...), j.FairnessClass)
	b = appendOptional(append(b, `,"lock_key":`...), j.LockKey)
	b = appendInt(append(b, `,"attempt":`...), int64(j.Attempt))
	b = appendInt(append(b, `,"max_attempts":`...), int64(j.MaxAttempts))
	b = appendInstant(append(b, `,"retry_at":`...), j.RetryAt)
	b = appendInstant(append(b, `,"run_at":`...), j.RunAt)
	b = appendText(append(b, `,"trace_id":`...), j.TraceID)
	b = appendRare(append(b, `,"progress":`...), j.Progress)
	b = appendOptional(append(b, `,"message":`...), j.Message)
	b = appendRaw(append(b, `,"checkpoint":`...), j.Checkpoint)
	b = appendRaw(append(b, `,"result":`...), j.Result)
	b = appendOptional(append(b, `,"error":`...), j.Error)
	b = appendInt(append(b, `,"interruptions":`...), int64(j.Interruptions))
	b = appendInt(append(b, `,"journal_entries":`...), int64(j.JournalEntries))
	b = appendBool(append(b, `,"cancel_requested":`...), j.CancelRequested)
	b = appendBool(append(b, `,"reattached":`...), j.Reattached)
	b = appendOptional(append(b, `,"definition_id":`...), j.DefinitionID)
	b = appendInstant(append(b, `,"tick_at":`...), j.TickAt)
	b = appendRare(append(b, `,"question":`...), j.Question)
	b = appendInt(append(b, `,"messages_sent":`...), j.MessagesSent)
	return append(appendInt(append(b, `,"messages_seen":`...), j.MessagesSeen), '}')
}

// between writes the comma before element i of a list.
func between(b []byte, i int) []byte {
	if i == 0 {
		return b
	}
	return append(b, ',')
}

func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return appendQuoted(b, s)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

func appendQuoted(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s) // it replaces what is no character, and reports that, which is not asked here
	return b
}

func appendOptional(b []byte, s *string) []byte {
	if s == nil {
		return append(b, "null"...)
	}
	return appendText(b, *s)
}

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }

func appendOptionalInt(b []byte, n *int64) []byte {
	if n == nil {
		return append(b, "null"...)
	}
	return appendInt(b, *n)
}

func appendBool(b []byte, v bool) []byte { return strconv.AppendBool(b, v) }

// appendRare writes a value that few jobs have.
func appendRare[T any](b []byte, v *T) []byte {
	if v == nil {
		return append(b, "null"...)
	}
	raw, err := json.Marshal(v, encoding)
	if err != nil { // a progress that is not a number, which rules refuses
		return append(b, "null"...)
	}
	return append(b, raw...)
}

// appendRaw writes a payload, result or checkpoint without the space between its tokens.
func appendRaw(b []byte, raw stdjson.RawMessage) []byte {
	if raw == nil {
		return append(b, "null"...)
	}
	inText := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inText && c == '\\':
			b = append(b, c)
			i++
		case c == '"':
			inText = !inText
		case !inText && (c == ' ' || c == '\n' || c == '\r' || c == '\t'):
			continue
		}
		b = append(b, raw[i])
	}
	return b
}

func appendID(b []byte, u lessor.UUID) []byte { return append(u.Append(append(b, '"')), '"') }

func appendInstant(b []byte, i lessor.Instant) []byte {
	if i == 0 {
		return append(b, "null"...)
	}
	return append(i.Append(append(b, '"')), '"')
}
