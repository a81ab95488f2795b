package httpapi

import "maps"

// parameters describes what paths and queries carry.
var parameters = map[string]object{
	"job_id":    {"type": "string", "description": "An id that is not a uuid is the id of no job."},
	"lease_id":  {"type": "string", "description": "An id that is not a uuid is the id of no lease."},
	"id":        {"type": "string", "description": "An id that is not a uuid is the id of no token."},
	"state":     {"type": "string", "enum": []any{"queued", "leased", "running", "completed", "failed", "expired", "cancelled"}},
	"type":      {"type": "string"},
	"tag":       {"type": "string"},
	"tenant_id": {"type": "string", "format": "uuid"},
	"worker_id": {"type": "string"},
	"limit":     {"type": "integer", "minimum": 1, "maximum": maxLimit, "default": defaultLimit},
	"cursor":    {"type": "string", "description": "next_cursor of the page before."},
}

// bounds repeats for readers of the document what rules enforces. TestBoundsOfTheDocumentHold sends a value on either
// side of each.
var bounds = map[string]object{
	"Submission.type":            {"minLength": 1, "maxLength": 120},
	"Submission.payload":         {"type": "object"},
	"Submission.priority":        {"enum": []any{"high", "normal", "low", "background"}, "default": "normal"},
	"Submission.requested_units": {"minimum": 1, "default": 1},
	"Submission.idempotency_key": {"minLength": 1, "maxLength": 200},
	"Submission.tags":            {"maxItems": 20},
	"Submission.max_runtime_s":   {"minimum": 1},
	"Submission.max_attempts":    {"minimum": 1, "maximum": 50},
	"Submission.run_at":          {"format": "date-time"},
	"Submission.tenant_id":       {"format": "uuid"},
	"Submission.lock_key":        {"minLength": 3, "maxLength": 200},
	"BackoffAsk.first_ms":        {"minimum": 0},
	"BackoffAsk.max_ms":          {"minimum": 0},
	"JobBatch.jobs":              {"minItems": 1, "maxItems": 1000},
	"LeaseRequest.worker_id":     {"minLength": 1, "maxLength": 200},
	"LeaseRequest.max_units":     {"minimum": 1},
	"LeaseRequest.max_leases":    {"minimum": 1, "maximum": 500},
	"LeaseRequest.wait_ms":       {"minimum": 0, "maximum": 30000},
	"LeaseRequest.request_id":    {"minLength": 1, "maxLength": 200},
	"LeaseRequest.ttl_ms":        {"minimum": 100, "maximum": 43200000},
	"Heartbeat.worker_id":        {"minLength": 1, "maxLength": 200},
	"Heartbeat.progress":         {"minimum": 0, "maximum": 1},
	"Heartbeat.message":          {"maxLength": 500},
	"Heartbeat.ttl_ms":           {"minimum": 100, "maximum": 43200000},
	"Completion.worker_id":       {"minLength": 1, "maxLength": 200},
	"Completion.status":          {"enum": []any{"completed", "failed", "cancelled"}},
	"Completion.retryable":       {"default": true},
	"LeaseCompletion.status":     {"enum": []any{"completed", "failed", "cancelled"}},
	"LeaseCompletion.retryable":  {"default": true},
	"CompletionBatch.leases":     {"minItems": 1, "maxItems": 1000},
	"BeatBatch.lease_ids":        {"minItems": 1, "maxItems": 1000},
	"Release.worker_id":          {"minLength": 1, "maxLength": 200},
	"Release.delay_ms":           {"minimum": 0},
	"CapacityBody.busy":          {"minimum": 0, "maximum": 10},
	"CapacityBody.total_units":   {"minimum": 0},
	"TokenAsk.role":              {"enum": []any{"viewer", "submitter", "worker", "operator", "admin"}},
	"TokenAsk.expiresInSeconds":  {"minimum": 1},
	"TokenAsk.name":              {"minLength": 1, "maxLength": 200},
	"TokenAsk.tenantId":          {"format": "uuid"},
	"Job.payload":                {"type": "object"},
	"Capacity.busy":              {"minimum": 0, "maximum": 10},
	"Status.busy":                {"minimum": 0, "maximum": 10},
	"Problem.type":               {"const": "about:blank"},
	"Denial.denied":              {"const": true},
	"Granted.denied":             {"const": false},
	"GrantedAll.denied":          {"const": false},
	"LeaseRefused.ok":            {"const": false},
	"LeaseBeaten.ok":             {"const": true},
	"LeaseEnded.ok":              {"const": true},
	"HeartbeatAnswer.ok":         {"const": true},
	"Done.ok":                    {"const": true},
	"Problem.outcome":            {"const": "unknown"},
	"Problem.trace_id":           {"pattern": "^[0-9a-f]{32}$"},
}

// bounded adds what is known of a field's values to its schema.
func bounded(o object, field string) object {
	more, ok := bounds[field]
	if !ok {
		return o
	}
	o = maps.Clone(o)
	maps.Copy(o, more)
	return o
}
