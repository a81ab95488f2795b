package httpapi

import (
	"bytes"
	stdjson "encoding/json"

	"lessor"
	"lessor/internal/scan"
)

// body reads the bodies that are sent so often that they have a decoder of their own, without reflection. It gives up
// on whatever the general decoder would refuse, and on fields that few bodies have: what it accepts it reads as the
// general decoder does (TestHotBodiesAreReadAsTheGeneralDecoderReadsThem).
type body struct{ *scan.Scanner }

// The slots of texts.
const (
	slotOther = iota
	slotWorker
	slotType
	slotPriority
	slotTenant
	slotClass
	slotStatus
)

// decodeHot reads a body into v, and reports whether it could. If not, v is to be read again.
func decodeHot(b []byte, v any) bool {
	switch v := v.(type) {
	case *lessor.Heartbeat:
		return scan.ReadStrictly(b, func(s *scan.Scanner) { body{s}.heartbeat(v) })
	case *beatBatch:
		return scan.ReadStrictly(b, func(s *scan.Scanner) { body{s}.heartbeats(v) })
	case *lessor.LeaseRequest:
		return scan.ReadStrictly(b, func(s *scan.Scanner) { body{s}.request(v) })
	case *lessor.Completion:
		return scan.ReadStrictly(b, func(s *scan.Scanner) { body{s}.completion(v) })
	case *completionBatch:
		return scan.ReadStrictly(b, func(s *scan.Scanner) { body{s}.completions(v) })
	case *lessor.Turn:
		return scan.ReadStrictly(b, func(s *scan.Scanner) { body{s}.turn(v) })
	case *lessor.JournalAppend:
		return scan.ReadStrictly(b, func(s *scan.Scanner) { body{s}.journal(v) })
	case *lessor.Submission:
		return scan.ReadStrictly(b, func(s *scan.Scanner) { body{s}.submission(v) })
	case *jobBatch:
		return scan.ReadStrictly(b, func(s *scan.Scanner) { body{s}.submissions(v) })
	}
	return false
}

// fields reads an object with a reader of its fields that returns false for a name that it does not know.
func (s body) fields(read func(name []byte) bool) {
	var o scan.Object
	for name, ok := s.Field(&o); ok; name, ok = s.Field(&o) {
		if !read(name) {
			s.Fail()
		}
	}
}

// need gives up if a required field is missing.
func (s body) need(given bool) {
	if !given {
		s.Fail()
	}
}

func (s body) heartbeat(h *lessor.Heartbeat) {
	s.fields(func(name []byte) bool {
		switch string(name) {
		case "worker_id":
			s.OptionalText(slotWorker, &h.WorkerID)
		case "progress":
			s.OptionalFloat(&h.Progress)
		case "message":
			s.OptionalText(slotOther, &h.Message)
		case "checkpoint":
			s.raw(&h.Checkpoint)
		case "ttl_ms":
			s.OptionalWhole(&h.TTLMS)
		case "messages_seen":
			s.OptionalWhole(&h.MessagesSeen)
		default:
			return false
		}
		return true
	})
	s.need(h.WorkerID != nil)
}

func (s body) heartbeats(b *beatBatch) {
	s.fields(func(name []byte) bool {
		switch string(name) {
		case "worker_id":
			s.OptionalText(slotWorker, &b.WorkerID)
		case "lease_ids":
			s.texts(&b.LeaseIDs)
		default:
			return false
		}
		return true
	})
	s.need(b.WorkerID != nil && b.LeaseIDs != nil)
}

func (s body) request(r *lessor.LeaseRequest) {
	var rest lessor.TurnRequest
	s.fields(func(name []byte) bool {
		if string(name) == "worker_id" {
			s.OptionalText(slotWorker, &r.WorkerID)
			return true
		}
		return s.requestField(&rest, name)
	})
	s.need(r.WorkerID != nil)
	*r = rest.By(r.WorkerID)
}

func (s body) requestField(r *lessor.TurnRequest, name []byte) bool {
	switch string(name) {
	case "max_units":
		s.OptionalWhole(&r.MaxUnits)
	case "types":
		s.texts(&r.Types)
	case "max_leases":
		s.OptionalWhole(&r.MaxLeases)
	case "wait_ms":
		s.OptionalWhole(&r.WaitMS)
	case "request_id":
		s.OptionalText(slotOther, &r.RequestID)
	case "ttl_ms":
		s.OptionalWhole(&r.TTLMS)
	case "workspace_id":
		s.OptionalText(slotOther, &r.WorkspaceID)
	case "view":
		s.OptionalText(slotOther, &r.View)
	default:
		return false
	}
	return true
}

func (s body) completion(d *lessor.Completion) {
	var end lessor.LeaseCompletion
	s.fields(func(name []byte) bool {
		switch string(name) {
		case "worker_id":
			s.OptionalText(slotWorker, &d.WorkerID)
		case "progress":
			s.OptionalFloat(&d.Progress)
		case "message":
			s.OptionalText(slotOther, &d.Message)
		case "checkpoint":
			s.raw(&d.Checkpoint)
		case "expires_in_s":
			s.OptionalWhole(&d.ExpiresInS)
		default:
			return s.endField(&end, name)
		}
		return true
	})
	s.need(d.WorkerID != nil && end.Status != nil)
	d.Status, d.Result, d.Error, d.Retryable = end.Status, end.Result, end.Error, end.Retryable
}

// endField reads a field that all completions have.
func (s body) endField(d *lessor.LeaseCompletion, name []byte) bool {
	switch string(name) {
	case "status":
		s.OptionalText(slotStatus, &d.Status)
	case "result":
		s.raw(&d.Result)
	case "error":
		s.OptionalText(slotOther, &d.Error)
	case "retryable":
		scan.Optional(s.Scanner, &d.Retryable, s.Bool)
	default:
		return false
	}
	return true
}

func (s body) completions(b *completionBatch) {
	s.fields(func(name []byte) bool {
		switch string(name) {
		case "worker_id":
			s.OptionalText(slotWorker, &b.WorkerID)
		case "leases":
			scan.List(s.Scanner, &b.Leases, s.leaseCompletion)
		default:
			return false
		}
		return true
	})
	s.need(b.WorkerID != nil && b.Leases != nil)
}

func (s body) leaseCompletion(d *lessor.LeaseCompletion) {
	s.fields(func(name []byte) bool {
		if string(name) == "lease_id" {
			s.OptionalText(slotOther, &d.LeaseID)
			return true
		}
		return s.endField(d, name)
	})
	s.need(d.LeaseID != nil && d.Status != nil)
}

func (s body) turn(t *lessor.Turn) {
	s.fields(func(name []byte) bool {
		switch string(name) {
		case "worker_id":
			s.OptionalText(slotWorker, &t.WorkerID)
		case "complete":
			scan.List(s.Scanner, &t.Complete, s.leaseCompletion)
		case "heartbeat":
			s.texts(&t.Heartbeat)
		case "request":
			scan.Optional(s.Scanner, &t.Request, func(r *lessor.TurnRequest) {
				s.fields(func(name []byte) bool { return s.requestField(r, name) })
			})
		default:
			return false
		}
		return true
	})
	s.need(t.WorkerID != nil)
}

func (s body) texts(into *[]string) {
	scan.List(s.Scanner, into, func(t *string) { s.Text(slotOther, t) })
}

// raw keeps a value as it was sent; null counts as none.
func (s body) raw(v *stdjson.RawMessage) {
	if *v = nil; !s.Null() {
		*v = bytes.Clone(s.Skip())
	}
}
