package httpapi

import (
	"lessor"
	"lessor/internal/scan"
)

func (s body) journal(a *lessor.JournalAppend) {
	s.fields(func(name []byte) bool {
		switch string(name) {
		case "worker_id":
			s.OptionalText(slotWorker, &a.WorkerID)
		case "after":
			s.OptionalWhole(&a.After)
		case "entries":
			scan.List(s.Scanner, &a.Entries, s.entry)
		default:
			return false
		}
		return true
	})
	s.need(a.WorkerID != nil && a.Entries != nil)
}

func (s body) entry(e *lessor.JournalAsk) {
	s.fields(func(name []byte) bool {
		switch string(name) {
		case "key":
			s.OptionalText(slotOther, &e.Key)
		case "kind":
			s.OptionalText(slotType, &e.Kind)
		case "data":
			s.raw(&e.Data)
		default:
			return false
		}
		return true
	})
	s.need(e.Key != nil)
}

func (s body) submission(j *lessor.Submission) {
	s.fields(func(name []byte) bool {
		switch string(name) {
		case "type":
			s.OptionalText(slotType, &j.Type)
		case "payload":
			s.raw(&j.Payload)
		case "priority":
			s.OptionalText(slotPriority, &j.Priority)
		case "idempotency_key":
			s.OptionalText(slotOther, &j.IdempotencyKey)
		case "tags":
			s.texts(&j.Tags)
		case "tenant_id":
			s.OptionalText(slotTenant, &j.TenantID)
		case "fairness_class":
			s.OptionalText(slotClass, &j.FairnessClass)
		default:
			return s.rareOfSubmission(j, name)
		}
		return true
	})
	s.need(j.Type != nil)
}

// rareOfSubmission reads the fields that few submissions have.
func (s body) rareOfSubmission(j *lessor.Submission, name []byte) bool {
	switch string(name) {
	case "requested_units":
		s.OptionalWhole(&j.RequestedUnits)
	case "unique":
		scan.Optional(s.Scanner, &j.Unique, s.Bool)
	case "max_runtime_s":
		s.OptionalWhole(&j.MaxRuntimeS)
	case "max_attempts":
		s.OptionalWhole(&j.MaxAttempts)
	case "run_at":
		s.OptionalText(slotOther, &j.RunAt)
	case "delay_ms":
		s.OptionalWhole(&j.DelayMS)
	case "lock_key":
		s.OptionalText(slotOther, &j.LockKey)
	default:
		return false
	}
	return true
}

func (s body) submissions(b *jobBatch) {
	s.fields(func(name []byte) bool {
		switch string(name) {
		case "jobs":
			scan.List(s.Scanner, &b.Jobs, s.submission)
		case "view":
			s.OptionalText(slotOther, &b.View)
		default:
			return false
		}
		return true
	})
	s.need(b.Jobs != nil)
}
