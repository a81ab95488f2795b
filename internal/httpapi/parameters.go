package httpapi

import (
	"maps"

	"lessor"
)

// parameters describes the parameters of paths and queries.
var parameters = map[string]object{
	"job_id":    {"type": "string", "description": "An id that is not a uuid is the id of no job."},
	"lease_id":  {"type": "string", "description": "An id that is not a uuid is the id of no lease."},
	"id":        {"type": "string", "description": "An id that is not a uuid is the id of no token."},
	"state":     enum(lessor.States()...),
	"type":      {"type": "string", "minLength": 1, "maxLength": 120},
	"tag":       {"type": "string", "minLength": 1, "maxLength": 80},
	"tenant_id": {"type": "string", "format": "uuid"},
	"worker_id": {"type": "string"},
	"wait_ms":   {"type": "integer", "minimum": 0, "maximum": maxWaitMS, "default": 0},
	"attempt":   {"type": "integer", "minimum": 0, "default": 0, "description": "0 is the last attempt."},
	"fence":     {"type": "integer", "minimum": 0, "default": 0, "description": "0 is the attempt's last lease."},
	"stream":    enum(lessor.Stdout, lessor.Stderr),
	"offset":    {"type": "integer", "default": 0, "description": "Where to begin; below 0 it counts from the end."},
	"limit":     {"type": "integer", "minimum": 1, "maximum": maxLimit, "default": defaultLimit},
	"after": {
		"type": "integer", "minimum": 0, "default": 0,
		"description": "The number of an entry, behind which the list begins: next_cursor of the page before.",
	},
	"cursor": {"type": "string", "description": "next_cursor or nextCursor of the page before."},
	"jobId": {
		"type":        "string",
		"description": "The id of a definition; under /api/admin, that of a job.",
	},
	"tenantId": {"type": "string", "description": "An id that is not a uuid is the id of no tenant."},
	"class":    {"type": "string"},
	"If-None-Match": {
		"type":        "string",
		"description": "Reading: answer 304 if this is still the version. Changing: refuse that; * only creates.",
	},
	"If-Match":  {"type": "string", "description": "Change only this version: the ETag of an earlier answer."},
	"handlerId": {"type": "string"},
	"moduleId":  {"type": "string"},
	"alertId":   {"type": "string", "description": "An id that is not a uuid is the id of no alert."},
	"runId":     {"type": "string", "description": "An id that is not a uuid is the id of no run."},
	"ref":       {"type": "string", "description": "lastErrorRef of a run."},
	"count":     {"type": "integer", "minimum": 1, "maximum": 100, "default": defaultCount},
	"from":      {"type": "string", "format": "date-time"},
	"to":        {"type": "string", "format": "date-time"},
	"status":    enum(lessor.RunStatuses()...),
	"traceId":   {"type": "string", "minLength": 8, "maxLength": 120},
	"open":      {"type": "string", "enum": []any{"true", "false"}, "description": "true leaves out what is cleared."},
	"profile": {"type": "string", "enum": []any{
		"allocs", "block", "goroutine", "heap", "mutex", "threadcreate",
		"profile", "trace",
	}},
	"seconds": {"type": "integer", "minimum": 1, "maximum": maxSeconds, "default": defaultSeconds},
	"actor":   {"type": "string"},
	"object":  {"type": "string", "description": "What was changed, like definition/nightly."},
}

// queried describes query parameters that differ from the parameters of paths with their names.
var queried = map[string]object{
	"jobId": {
		"type": "string", "minLength": 3, "maxLength": 120, "description": "The id of a definition, or of a plain job.",
	},
	"tenantId": {"type": "string", "format": "uuid"},
}

func queryParameter(name string) object {
	if o, ok := queried[name]; ok {
		return o
	}
	return parameters[name]
}

// bounds repeats the limits of rules for the document. TestBoundsOfTheDocumentHold sends a value on either side of
// each.
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
	"Submission.delay_ms":        {"minimum": 0, "maximum": 31622400000},
	"Submission.tenant_id":       {"format": "uuid"},
	"Submission.lock_key":        {"minLength": 3, "maxLength": 200},
	"BackoffAsk.first_ms":        {"minimum": 0},
	"BackoffAsk.max_ms":          {"minimum": 0},
	"JobBatch.jobs":              {"minItems": 1, "maxItems": 1000},
	"JobBatch.view":              {"enum": []any{lessor.ViewFull, lessor.ViewIDs}, "default": lessor.ViewFull},
	"LeaseRequest.worker_id":     {"minLength": 1, "maxLength": 200},
	"LeaseRequest.max_units":     {"minimum": 1},
	"LeaseRequest.max_leases":    {"minimum": 1, "maximum": 500},
	"LeaseRequest.wait_ms":       {"minimum": 0, "maximum": 30000},
	"LeaseRequest.request_id":    {"minLength": 1, "maxLength": 200},
	"LeaseRequest.ttl_ms":        {"minimum": 100, "maximum": 43200000},
	"LeaseRequest.view":          {"enum": []any{lessor.ViewFull, lessor.ViewWork}},
	"Turn.worker_id":             {"minLength": 1, "maxLength": 200},
	"Turn.complete":              {"maxItems": 1000},
	"Turn.heartbeat":             {"maxItems": 1000},
	"TurnRequest.max_units":      {"minimum": 1},
	"TurnRequest.max_leases":     {"minimum": 1, "maximum": 500},
	"TurnRequest.wait_ms":        {"minimum": 0, "maximum": 30000},
	"TurnRequest.request_id":     {"minLength": 1, "maxLength": 200},
	"TurnRequest.ttl_ms":         {"minimum": 100, "maximum": 43200000},
	"TurnRequest.view":           {"enum": []any{lessor.ViewFull, lessor.ViewWork}},
	"CancelWait.worker_id":       {"minLength": 1, "maxLength": 200},
	"CancelWait.wait_ms":         {"minimum": 0, "maximum": 30000},
	"Heartbeat.worker_id":        {"minLength": 1, "maxLength": 200},
	"Heartbeat.progress":         {"minimum": 0, "maximum": 1},
	"Heartbeat.message":          {"maxLength": 500},
	"Heartbeat.ttl_ms":           {"minimum": 100, "maximum": 43200000},
	"JournalAppend.worker_id":    {"minLength": 1, "maxLength": 200},
	"JournalAppend.after":        {"minimum": 0},
	"JournalAppend.entries":      {"minItems": 1, "maxItems": lessor.MaxAppend},
	"MessageAsk.key":             {"minLength": 1, "maxLength": 200},
	"JournalAsk.key":             {"minLength": 1, "maxLength": 200},
	"JournalAsk.kind":            {"maxLength": 120},
	"OutputReport.worker_id":     {"minLength": 1, "maxLength": 200},
	"OutputChunk.stream":         {"enum": []any{lessor.Stdout, lessor.Stderr}},
	"OutputChunk.offset":         {"minimum": 0},
	"Completion.worker_id":       {"minLength": 1, "maxLength": 200},
	"Completion.status":          {"enum": []any{"completed", "failed", "cancelled", "waiting"}},
	"Completion.retryable":       {"default": true},
	"LeaseCompletion.status":     {"enum": []any{"completed", "failed", "cancelled"}},
	"LeaseCompletion.retryable":  {"default": true},
	"CompletionBatch.leases":     {"minItems": 1, "maxItems": 1000},
	"BeatBatch.lease_ids":        {"minItems": 1, "maxItems": 1000},
	"Release.worker_id":          {"minLength": 1, "maxLength": 200},
	"Release.delay_ms":           {"minimum": 0},
	"Release.reason": {"enum": []any{
		lessor.ReleaseCannotStart, lessor.ReleaseFolderHeld,
		lessor.ReleaseUndelivered,
	}},
	"LevelBody.level":               {"enum": []any{"debug", "info", "warn", "error"}},
	"CapacityAsk.busy":              {"minimum": 0, "maximum": 10},
	"CapacityAsk.total_units":       {"minimum": 0},
	"TokenAsk.role":                 {"enum": []any{"viewer", "submitter", "worker", "operator", "admin"}},
	"TokenAsk.expiresInSeconds":     {"minimum": 1},
	"TokenAsk.name":                 {"minLength": 1, "maxLength": 200},
	"TokenAsk.tenantId":             {"format": "uuid"},
	"Envelope.jobId":                {"minLength": 3, "maxLength": 120},
	"Envelope.tenantId":             {"format": "uuid"},
	"Envelope.handlerId":            {"minLength": 3, "maxLength": 120},
	"Envelope.lockKey":              {"minLength": 3, "maxLength": 200},
	"Envelope.maxAttempts":          {"minimum": 1, "maximum": 50, "default": 5},
	"Envelope.timeoutSeconds":       {"minimum": 1, "maximum": 3600, "default": 300},
	"Envelope.maxRuntimeSeconds":    {"minimum": 1, "maximum": 604800, "default": 300},
	"TriggerBody.payload":           {"type": "object"},
	"Envelope.fairnessClass":        {"minLength": 1, "maxLength": 80, "default": "default"},
	"Envelope.isEnabled":            {"default": true},
	"Envelope.payload":              {"type": "object"},
	"Envelope.priority":             {"enum": []any{"high", "normal", "low", "background"}, "default": "normal"},
	"Envelope.requestedUnits":       {"minimum": 1, "default": 1},
	"Envelope.timezone":             {"default": "UTC"},
	"Envelope.overlap":              {"enum": []any{"skip", "queueOne", "allow", "cancelPrevious"}, "default": "skip"},
	"Envelope.catchUp":              {"enum": []any{"latest", "none", "all"}, "default": "latest"},
	"Envelope.catchUpWindowSeconds": {"minimum": 0, "maximum": 604800, "default": 3600},
	"Envelope.jitterSeconds":        {"minimum": 0, "maximum": 86400, "default": 0},
	"ScheduleAsk.type":              {"enum": []any{"cron", "interval"}},
	"ScheduleAsk.cron":              {"minLength": 3, "maxLength": 120},
	"ScheduleAsk.seconds":           {"minimum": 1},
	"CircuitAsk.failures":           {"minimum": 1, "maximum": 1000},
	"CircuitAsk.cooldownSeconds":    {"minimum": 1, "maximum": 2592000},
	"DefinitionBackoffAsk.firstMs":  {"minimum": 0},
	"DefinitionBackoffAsk.maxMs":    {"minimum": 0},
	"Manifest.moduleId":             {"minLength": 1, "maxLength": 120},
	"Manifest.version":              {"minLength": 1, "maxLength": 120},
	"Manifest.tenantId":             {"format": "uuid"},
	"Manifest.jobs":                 {"maxItems": 1000},
	"TenantAsk.name":                {"minLength": 1, "maxLength": 200},
	"TenantAsk.weight":              {"minimum": 1, "maximum": 10000, "default": 1},
	"TenantAsk.maxConcurrency":      {"minimum": 1, "maximum": 1000000},
	"BackfillBody.from":             {"format": "date-time"},
	"BackfillBody.to":               {"format": "date-time"},
	"Definition.payload":            {"type": "object"},
	"HandlerBody.schema":            {"type": []any{"object", "boolean"}},
	"Job.payload":                   {"type": "object"},
	"Capacity.busy":                 {"minimum": 0, "maximum": 10},
	"Status.busy":                   {"minimum": 0, "maximum": 10},
	"Problem.type":                  {"const": "about:blank"},
	"Denial.denied":                 {"const": true},
	"Granted.denied":                {"const": false},
	"GrantedAll.denied":             {"const": false},
	"LeaseRefused.ok":               {"const": false},
	"LeaseExtended.ok":              {"const": true},
	"LeaseEnded.ok":                 {"const": true},
	"HeartbeatAnswer.ok":            {"const": true},
	"Done.ok":                       {"const": true},
	"Problem.outcome":               {"const": "unknown"},
	"Problem.trace_id":              {"pattern": "^[0-9a-f]{32}$"},
}

// bounded adds the bounds of a field to its schema.
func bounded(o object, field string) object {
	more, ok := bounds[field]
	if !ok {
		return o
	}
	o = maps.Clone(o)
	maps.Copy(o, more)
	return o
}
