package httpapi

import (
	"net/http"

	"lessor"
	"lessor/internal/token"
)

const schedules = "/api/kernel"

func definitionRoutes(payloadLimit int64) []route {
	const jobs, job = schedules + "/jobs", schedules + "/jobs/{jobId}"
	unknown := codes(lessor.CodeDefinitionNotFound)
	return []route{{
		method: http.MethodPut, path: job, scope: token.Schedule,
		summary: "Store a definition whole: 201 if it is new, 200 if it was there.",
		handle:  takes(payloadLimit, (*call).putDefinition, (*call).checkDefinition), versioned: true,
		answers:  []answer{{http.StatusCreated, lessor.Definition{}}, {http.StatusOK, lessor.Definition{}}},
		refusals: codes(lessor.CodeConflict),
	}, {
		method: http.MethodGet, path: jobs, scope: token.Read, summary: "List definitions, newest first.",
		query:  []string{"tenantId", "moduleId", "limit", "cursor"},
		handle: plain((*call).definitions), answers: answers(http.StatusOK, definitionList{}),
	}, {
		method: http.MethodGet, path: job, scope: token.Read, summary: "Show a definition.",
		handle:    plain(byID(definitionID, (*call).definition)),
		versioned: true, answers: answers(http.StatusOK, lessor.Definition{}), refusals: unknown,
	}, {
		method: http.MethodDelete, path: job, scope: token.Schedule,
		summary:   "Delete a definition: its queued jobs are cancelled, its runs stay.",
		handle:    plain(byID(definitionID, (*call).deleteDefinition)),
		versioned: true, answers: answers(http.StatusNoContent, nil), refusals: unknown,
	}, {
		method: http.MethodPost, path: schedules + "/manifests", scope: token.Schedule,
		summary: "Store a module's definitions for one tenant, all or none; prune removes its others, " +
			"dryRun only shows what would change.",
		handle:   takes(bodyBatch, (*call).apply, (*call).checkManifest),
		answers:  answers(http.StatusOK, lessor.Applied{}),
		refusals: codes(lessor.CodeConflict),
	}, {
		method: http.MethodPost, path: job + "/pause", scope: token.Schedule,
		summary:   "Pause a definition: no ticks, and its queued jobs wait.",
		handle:    takes(bodySmall, byIDWithBody(definitionID, (*call).pause)),
		versioned: true, answers: answers(http.StatusOK, lessor.Definition{}),
		refusals: unknown,
	}, {
		method: http.MethodPost, path: job + "/resume", scope: token.Schedule,
		summary:   "Resume a definition; ticks of its pause are not caught up.",
		handle:    takes(bodySmall, byIDWithBody(definitionID, (*call).resume)),
		versioned: true, answers: answers(http.StatusOK, lessor.Definition{}),
		refusals: unknown,
	}, {
		method: http.MethodPost, path: job + "/circuit/reset", scope: token.Schedule,
		summary:   "Close a definition's circuit by hand.",
		handle:    takes(bodySmall, byIDWithBody(definitionID, (*call).resetCircuit)),
		versioned: true, answers: answers(http.StatusOK, lessor.Definition{}),
		refusals: unknown,
	}, {
		method: http.MethodPost, path: job + "/trigger", scope: token.Schedule,
		summary:  "Make a job of a definition now, also of one that is paused; a payload replaces the definition's.",
		handle:   takes(payloadLimit, byIDWithBody(definitionID, (*call).trigger)),
		answers:  answers(http.StatusCreated, triggered{}),
		refusals: unknown,
	}, {
		method: http.MethodPost, path: job + "/backfill", scope: token.Schedule,
		summary: "Make the jobs of up to 1000 past ticks that have none.",
		handle:  takes(bodySmall, (*call).backfill), answers: answers(http.StatusAccepted, backfilled{}),
		refusals: unknown,
	}, {
		method: http.MethodGet, path: job + "/next", scope: token.Read,
		summary: "Show the next ticks, also of a definition that is paused.",
		query:   []string{"count"},
		handle:  plain(byID(definitionID, (*call).nextTicks)),
		answers: answers(http.StatusOK, nextTicks{}), refusals: unknown,
	}, {
		method: http.MethodGet, path: job + "/ticks", scope: token.Read,
		summary: "List what became of ticks, oldest first.",
		query:   []string{"from", "to", "limit", "cursor"},
		handle:  plain(byID(definitionID, (*call).ticks)),
		answers: answers(http.StatusOK, tickList{}), refusals: unknown,
	}}
}

func auditRoutes() []route {
	return []route{{
		method: http.MethodGet, path: schedules + "/runs", scope: token.Read,
		summary: "List the audit of runs, newest first.",
		query:   []string{"jobId", "tenantId", "status", "traceId", "limit", "cursor"},
		handle:  plain((*call).runs), answers: answers(http.StatusOK, runList{}),
	}, {
		method: http.MethodGet, path: schedules + "/runs/{runId}", scope: token.Read,
		summary: "Show the audit of a run.",
		handle:  plain(byID(runID, (*call).runAudit)), answers: answers(http.StatusOK, lessor.Run{}),
		refusals: codes(lessor.CodeRunNotFound),
	}, {
		method: http.MethodGet, path: schedules + "/errors/{ref}", scope: token.Read,
		summary: "Show what went wrong in the attempt that a run's lastErrorRef names.",
		handle:  plain((*call).runError), answers: answers(http.StatusOK, lessor.RunError{}),
		refusals: codes(lessor.CodeErrorNotFound),
	}, {
		method: http.MethodGet, path: schedules + "/circuits", scope: token.Read,
		summary: "List the circuits of definitions that failed lately, the last that opened first.",
		query:   []string{"limit", "cursor"},
		handle:  plain((*call).circuits), answers: answers(http.StatusOK, circuitList{}),
	}, {
		method: http.MethodGet, path: schedules + "/locks", scope: token.Read,
		summary: "List held locks, the last that was taken first.",
		query:   []string{"tenantId", "limit", "cursor"},
		handle:  plain((*call).locks), answers: answers(http.StatusOK, lockList{}),
	}, {
		method: http.MethodGet, path: schedules + "/alerts", scope: token.Read, summary: "List alerts, newest first.",
		query:  []string{"open", "limit", "cursor"},
		handle: plain((*call).alerts), answers: answers(http.StatusOK, alertList{}),
	}, {
		method: http.MethodPost, path: schedules + "/alerts/{alertId}/acknowledge", scope: token.Schedule,
		summary:  "Acknowledge an alert. It keeps its first acknowledgement.",
		handle:   takes(bodySmall, byIDWithBody(alertID, (*call).acknowledge)),
		answers:  answers(http.StatusOK, lessor.Alert{}),
		refusals: codes(lessor.CodeAlertNotFound),
	}, {
		method: http.MethodGet, path: schedules + "/audit", scope: token.ReadAudit,
		summary: "List who changed which definition, tenant, token or capacity, newest first.",
		query:   []string{"actor", "object", "limit", "cursor"},
		handle:  plain((*call).audit), answers: answers(http.StatusOK, auditList{}),
	}}
}

func tenantRoutes() []route {
	const tenant = schedules + "/tenants/{tenantId}"
	const class = tenant + "/classes/{class}"
	unknown := codes(lessor.CodeTenantNotFound)
	return []route{{
		method: http.MethodGet, path: schedules + "/tenants", scope: token.Read,
		summary: "List tenants by id, the largest first.",
		query:   []string{"limit", "cursor"},
		handle:  plain((*call).tenants), answers: answers(http.StatusOK, tenantList{}),
	}, {
		method: http.MethodGet, path: tenant, scope: token.Read,
		summary:   "Show a tenant; one that was never seen has the defaults.",
		handle:    plain(byID(tenantID, (*call).tenant)),
		versioned: true, answers: answers(http.StatusOK, lessor.Tenant{}), refusals: unknown,
	}, {
		method: http.MethodPut, path: tenant, scope: token.SetTenant,
		summary:   "Change a tenant's name, weight, cap and pause: fields left out stay, null returns to the default.",
		handle:    takes(bodySmall, byIDWithBody(tenantID, (*call).setTenant)),
		versioned: true, answers: answers(http.StatusOK, lessor.Tenant{}),
		refusals: unknown,
	}, {
		method: http.MethodGet, path: tenant + "/classes", scope: token.Read,
		summary: "List a tenant's fairness classes by name.",
		query:   []string{"limit", "cursor"},
		handle:  plain(byID(tenantID, (*call).classes)),
		answers: answers(http.StatusOK, classList{}), refusals: unknown,
	}, {
		method: http.MethodGet, path: class, scope: token.Read,
		summary: "Show a fairness class; one that was never seen has the defaults.",
		handle:  plain(byID(tenantID, (*call).class)), versioned: true,
		answers:  answers(http.StatusOK, lessor.Class{}),
		refusals: append(codes(lessor.CodeInvalidValue), unknown...),
	}, {
		method: http.MethodPut, path: class, scope: token.SetTenant,
		summary:   "Change a class's name, weight, cap and pause: fields left out stay, null returns to the default.",
		handle:    takes(bodySmall, byIDWithBody(tenantID, (*call).setClass)),
		versioned: true, answers: answers(http.StatusOK, lessor.Class{}), refusals: unknown,
	}, {
		method: http.MethodGet, path: schedules + "/handlers", scope: token.ReadHandlers,
		summary: "List handlers and their schemas, the last that was set first.",
		query:   []string{"limit", "cursor"},
		handle:  plain((*call).handlers), answers: answers(http.StatusOK, handlerList{}),
	}, {
		method: http.MethodPut, path: schedules + "/handlers/{handlerId}", scope: token.SetHandler,
		summary: "Register the JSON Schema (2020-12) that a handler's payloads must meet: 201 if the handler is new, " +
			"200 if it was there.",
		handle:  takes(bodySchema, (*call).setHandler),
		answers: []answer{{http.StatusCreated, lessor.Handler{}}, {http.StatusOK, lessor.Handler{}}},
	}}
}
