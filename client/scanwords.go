package client

import (
	"bytes"
	"encoding/json"

	"lessor"
	"lessor/internal/scan"
)

// scanner reads the answers that a busy worker gets all the time. What it accepts it reads as encoding/json does:
// TestScannerReadsWhatEncodingJSONReads.
type scanner struct{ *scan.Scanner }

// The slots of texts.
const (
	slotOther = iota
	slotType
	slotWorker
	slotTrace
	slotState
	slotClass
	slotWord
)

// The readers of words have a case for each field of its type, and TestScannerReadsWhatEncodingJSONReads fails for a
// field that has none.

func (s scanner) lease(l *lessor.Lease) {
	var o scan.Object
	for name, ok := s.Field(&o); ok; name, ok = s.Field(&o) {
		switch string(name) {
		case "lease_id":
			s.id(&l.ID.UUID)
		case "job_id":
			s.id(&l.JobID.UUID)
		case "type":
			s.Text(slotType, &l.Type)
		case "worker_id":
			s.Text(slotWorker, &l.WorkerID)
		case "capacity_units":
			s.int(&l.CapacityUnits)
		case "issued_at":
			s.instant(&l.IssuedAt)
		case "expires_at":
			s.instant(&l.ExpiresAt)
		case "last_heartbeat":
			s.instant(&l.LastHeartbeat)
		case "fence":
			l.Fence = s.Whole()
		case "ttl_ms":
			l.TTLMS = s.Whole()
		case "heartbeat_after_ms":
			l.HeartbeatAfterMS = s.Whole()
		default:
			s.unknown(name)
		}
	}
}

func (s scanner) job(j *lessor.Job) {
	var o scan.Object
	for name, ok := s.Field(&o); ok; name, ok = s.Field(&o) {
		switch string(name) {
		case "job_id":
			s.id(&j.ID.UUID)
		case "type":
			s.Text(slotType, &j.Type)
		case "priority":
			s.priority(&j.Priority)
		case "requested_units":
			s.int(&j.RequestedUnits)
		case "unique":
			s.Bool(&j.Unique)
		case "state":
			s.Text(slotState, (*string)(&j.State))
		case "payload":
			s.raw(&j.Payload)
		case "tags":
			scan.List(s.Scanner, &j.Tags, func(t *string) { s.Text(slotOther, t) })
		case "lease_id":
			scan.Optional(s.Scanner, &j.LeaseID, func(id *lessor.LeaseID) { s.id(&id.UUID) })
		case "created_at":
			s.instant(&j.CreatedAt)
		case "updated_at":
			s.instant(&j.UpdatedAt)
		case "tenant_id":
			s.id(&j.TenantID.UUID)
		case "fairness_class":
			s.Text(slotClass, &j.FairnessClass)
		case "attempt":
			s.int(&j.Attempt)
		case "max_attempts":
			s.int(&j.MaxAttempts)
		case "trace_id":
			s.Text(slotTrace, &j.TraceID)
		default:
			s.rareOfJob(j, name)
		}
	}
}

// rareOfJob reads the fields of a job that few jobs have.
func (s scanner) rareOfJob(j *lessor.Job, name []byte) {
	switch string(name) {
	case "idempotency_key":
		s.OptionalText(slotOther, &j.IdempotencyKey)
	case "max_runtime_s":
		s.OptionalWhole(&j.MaxRuntimeS)
	case "lock_key":
		s.OptionalText(slotOther, &j.LockKey)
	case "retry_at":
		s.instant(&j.RetryAt)
	case "run_at":
		s.instant(&j.RunAt)
	case "progress":
		s.OptionalFloat(&j.Progress)
	case "message":
		s.OptionalText(slotOther, &j.Message)
	case "checkpoint":
		s.raw(&j.Checkpoint)
	case "result":
		s.raw(&j.Result)
	case "error":
		s.OptionalText(slotOther, &j.Error)
	case "interruptions":
		s.int(&j.Interruptions)
	case "journal_entries":
		s.int(&j.JournalEntries)
	case "cancel_requested":
		s.Bool(&j.CancelRequested)
	case "reattached":
		s.Bool(&j.Reattached)
	case "definition_id":
		s.OptionalText(slotOther, &j.DefinitionID)
	case "tick_at":
		s.instant(&j.TickAt)
	case "question":
		scan.Optional(s.Scanner, &j.Question, func(q *lessor.Question) { scanRare(s, q) })
	case "messages_sent":
		j.MessagesSent = s.Whole()
	case "messages_seen":
		j.MessagesSeen = s.Whole()
	default:
		s.unknown(name)
	}
}

func (s scanner) priority(p *lessor.Priority) {
	var name string
	s.Text(slotWord, &name)
	v, ok := lessor.ParsePriority(name)
	if !ok {
		s.Fail()
	}
	*p = v
}

// scanRare leaves a value to encoding/json.
func scanRare(s scanner, into any) {
	if json.Unmarshal(s.Skip(), into) != nil {
		s.Fail()
	}
}

func (s scanner) grant(g *lessor.Grant) {
	var o scan.Object
	for name, ok := s.Field(&o); ok; name, ok = s.Field(&o) {
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

func (s scanner) beat(a *lessor.HeartbeatAnswer, name []byte) {
	switch string(name) {
	case "ok":
		s.Bool(&a.OK)
	case "expires_at":
		s.instant(&a.ExpiresAt)
	case "heartbeat_after_ms":
		a.HeartbeatAfterMS = s.Whole()
	case "cancel_requested":
		s.Bool(&a.CancelRequested)
	case "messages":
		scan.List(s.Scanner, &a.Messages, func(m *lessor.Message) { scanRare(s, m) })
	default:
		s.unknown(name)
	}
}

func (s scanner) id(v *lessor.UUID) {
	_, text := s.Plain()
	u, err := lessor.ParseUUID(string(text))
	if err != nil {
		s.Fail()
	}
	*v = u
}

func (s scanner) instant(v *lessor.Instant) {
	if *v = 0; s.Null() {
		return
	}
	if quoted, _ := s.Plain(); quoted == nil || v.UnmarshalJSON(quoted) != nil {
		s.Fail()
	}
}

// unknown skips the value of a field that this version does not know. encoding/json finds a field also if its name is
// written in capitals, so such a name is left to it.
func (s scanner) unknown(name []byte) {
	for _, c := range name {
		if c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			s.Fail()
			return
		}
	}
	s.Skip()
}

// raw reads a value of any kind and copies it.
func (s scanner) raw(v *json.RawMessage) { *v = bytes.Clone(s.Skip()) }

func (s scanner) int(v *int) { *v = int(s.Whole()) }
