package client

import (
	"bytes"
	"encoding/json"
	"strconv"

	"lessor"
)

// The readers of words have a case for each field of its type, and TestScannerReadsWhatEncodingJSONReads fails for a
// field that has none.

func (s *scanner) lease(l *lessor.Lease) {
	first := true
	for name, ok := s.field(&first); ok; name, ok = s.field(&first) {
		switch string(name) {
		case "lease_id":
			s.id(&l.ID.UUID)
		case "job_id":
			s.id(&l.JobID.UUID)
		case "type":
			s.text(slotType, &l.Type)
		case "worker_id":
			s.text(slotWorker, &l.WorkerID)
		case "capacity_units":
			s.int(&l.CapacityUnits)
		case "issued_at":
			s.instant(&l.IssuedAt)
		case "expires_at":
			s.instant(&l.ExpiresAt)
		case "last_heartbeat":
			s.instant(&l.LastHeartbeat)
		case "fence":
			s.int64(&l.Fence)
		case "ttl_ms":
			s.int64(&l.TTLMS)
		case "heartbeat_after_ms":
			s.int64(&l.HeartbeatAfterMS)
		default:
			s.unknown(name)
		}
	}
}

func (s *scanner) job(j *lessor.Job) {
	first := true
	for name, ok := s.field(&first); ok; name, ok = s.field(&first) {
		switch string(name) {
		case "job_id":
			s.id(&j.ID.UUID)
		case "type":
			s.text(slotType, &j.Type)
		case "priority":
			s.priority(&j.Priority)
		case "requested_units":
			s.int(&j.RequestedUnits)
		case "unique":
			s.bool(&j.Unique)
		case "state":
			s.text(slotState, (*string)(&j.State))
		case "payload":
			s.raw(&j.Payload)
		case "tags":
			scanList(s, &j.Tags, func(t *string) { s.text(slotOther, t) })
		case "lease_id":
			scanOptional(s, &j.LeaseID, func(id *lessor.LeaseID) { s.id(&id.UUID) })
		case "created_at":
			s.instant(&j.CreatedAt)
		case "updated_at":
			s.instant(&j.UpdatedAt)
		case "tenant_id":
			s.id(&j.TenantID.UUID)
		case "fairness_class":
			s.text(slotClass, &j.FairnessClass)
		case "attempt":
			s.int(&j.Attempt)
		case "max_attempts":
			s.int(&j.MaxAttempts)
		case "trace_id":
			s.text(slotTrace, &j.TraceID)
		default:
			s.rareOfJob(j, name)
		}
	}
}

// rareOfJob reads the fields of a job that few jobs have.
func (s *scanner) rareOfJob(j *lessor.Job, name []byte) {
	switch string(name) {
	case "idempotency_key":
		s.optionalText(&j.IdempotencyKey)
	case "max_runtime_s":
		s.optionalInt(&j.MaxRuntimeS)
	case "lock_key":
		s.optionalText(&j.LockKey)
	case "retry_at":
		s.instant(&j.RetryAt)
	case "run_at":
		s.instant(&j.RunAt)
	case "progress":
		s.optionalFloat(&j.Progress)
	case "message":
		s.optionalText(&j.Message)
	case "checkpoint":
		s.raw(&j.Checkpoint)
	case "result":
		s.raw(&j.Result)
	case "error":
		s.optionalText(&j.Error)
	case "interruptions":
		s.int(&j.Interruptions)
	case "journal_entries":
		s.int(&j.JournalEntries)
	case "cancel_requested":
		s.bool(&j.CancelRequested)
	case "reattached":
		s.bool(&j.Reattached)
	case "definition_id":
		s.optionalText(&j.DefinitionID)
	case "tick_at":
		s.instant(&j.TickAt)
	case "question":
		scanOptional(s, &j.Question, func(q *lessor.Question) { scanRare(s, q) })
	case "messages_sent":
		s.int64(&j.MessagesSent)
	case "messages_seen":
		s.int64(&j.MessagesSeen)
	default:
		s.unknown(name)
	}
}

func (s *scanner) priority(p *lessor.Priority) {
	var name string
	s.text(slotWord, &name)
	v, ok := lessor.ParsePriority(name)
	if !ok {
		s.fail()
	}
	*p = v
}

func (s *scanner) optionalFloat(v **float64) {
	if *v = nil; s.null() {
		return
	}
	f, err := strconv.ParseFloat(string(s.skip(0)), 64)
	if err != nil {
		s.fail()
	}
	*v = &f
}

// scanOptional reads null, or a value with a reader of it.
func scanOptional[T any](s *scanner, into **T, read func(*T)) {
	switch {
	case *into != nil: // the field is there twice
		s.fail()
	case !s.null():
		*into = new(T)
		read(*into)
	}
}

// scanRare leaves a value to encoding/json.
func scanRare(s *scanner, into any) {
	if json.Unmarshal(s.skip(0), into) != nil {
		s.fail()
	}
}

// scanList reads a list with a reader of its elements.
func scanList[T any](s *scanner, into *[]T, read func(*T)) {
	if *into != nil { // the field is there twice
		s.fail()
	}
	if s.null() {
		return
	}
	list, first := []T{}, true
	for s.more(&first, '[', ']') {
		list = append(list, *new(T))
		read(&list[len(list)-1])
	}
	*into = list
}

func (s *scanner) grant(g *lessor.Grant) {
	first := true
	for name, ok := s.field(&first); ok; name, ok = s.field(&first) {
		switch string(name) {
		case "lease":
			s.lease(&g.Lease)
		case "job":
			s.job(&g.Job)
		default:
			s.unknown(name)
		}
	}
}

func (s *scanner) beat(a *lessor.HeartbeatAnswer, name []byte) {
	switch string(name) {
	case "ok":
		s.bool(&a.OK)
	case "expires_at":
		s.instant(&a.ExpiresAt)
	case "heartbeat_after_ms":
		s.int64(&a.HeartbeatAfterMS)
	case "cancel_requested":
		s.bool(&a.CancelRequested)
	case "messages":
		scanList(s, &a.Messages, func(m *lessor.Message) { scanRare(s, m) })
	default:
		s.unknown(name)
	}
}

func (s *scanner) optionalText(v **string) {
	if *v = nil; !s.null() {
		*v = new(string)
		s.text(slotOther, *v)
	}
}

func (s *scanner) optionalInt(v **int64) {
	if *v = nil; !s.null() {
		*v = new(s.number())
	}
}

func (s *scanner) id(v *lessor.UUID) {
	raw, plain := s.quoted()
	u, err := lessor.ParseUUID(string(raw))
	if err != nil || !plain {
		s.fail()
	}
	*v = u
}

func (s *scanner) instant(v *lessor.Instant) {
	if *v = 0; s.null() {
		return
	}
	start := s.at // of the quote: null has skipped the space
	if _, plain := s.quoted(); !plain || s.bad || v.UnmarshalJSON(s.b[start:s.at]) != nil {
		s.fail()
	}
}

// unknown skips the value of a field that this version does not know. encoding/json finds a field also if its name is
// written in capitals, so such a name is left to it.
func (s *scanner) unknown(name []byte) {
	for _, c := range name {
		if c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			s.fail()
			return
		}
	}
	s.skip(0)
}

// raw reads a value of any kind and copies it.
func (s *scanner) raw(v *json.RawMessage) { *v = bytes.Clone(s.skip(0)) }
