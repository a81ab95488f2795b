package httpapi

import (
	"net/http"
	"slices"

	"lessor"
	"lessor/internal/token"
)

// route is one line of the table.
type route struct {
	method, path string
	scope        token.Scope
	summary      string
	query        []string // the names of its query parameters; parameters.go describes them
	handle       handle
	answers      []answer      // its successes
	refusals     []lessor.Code // its refusals, besides those that every route of its kind has (openapi.go)
	stream       bool          // the answer may go on for long: no time limit, no HEAD
	unrated      bool          // it does not count in the busy rating
	versioned    bool          // its answer has an ETag, and a change honours If-Match
}

// answer is a success: its status and a value of its body's type. nil means no body, a string its content type.
type answer struct {
	status int
	body   any
}

func answers(status int, bodies ...any) []answer {
	as := make([]answer, len(bodies))
	for i, b := range bodies {
		as[i] = answer{status, b}
	}
	return as
}

func codes(cs ...lessor.Code) []lessor.Code { return cs }

const (
	scheduling     = "/api/system/scheduler"
	administration = "/api/admin"
)

// routes is the whole API. To add a route: words → rules → scheduler → a line here → client → cli → docs → contract
// test.
func routes(payloadLimit int64) []route {
	return slices.Concat(
		jobRoutes(payloadLimit), leaseRoutes(payloadLimit), stateRoutes(),
		definitionRoutes(payloadLimit), auditRoutes(), tenantRoutes(), adminRoutes(), diagnosticRoutes(),
		recoveryRoutes(),
	)
}

func jobRoutes(payloadLimit int64) []route {
	const jobs, job = scheduling + "/jobs", scheduling + "/jobs/{job_id}"
	return []route{{
		method: http.MethodPost, path: jobs, scope: token.Submit,
		summary:  "Submit a job. 200 and the first job if its idempotency key is known.",
		handle:   takes(payloadLimit, (*call).submit, (*call).checkOne),
		answers:  []answer{{http.StatusCreated, lessor.Job{}}, {http.StatusOK, lessor.Job{}}},
		refusals: codes(lessor.CodeConflict),
	}, {
		method: http.MethodPost, path: jobs + "/batch", scope: token.Submit,
		summary: "Submit 1 to 1000 jobs, all or none. Known idempotency keys return their job in place.",
		handle:  takes(bodyBatch, (*call).submitAll, (*call).checkAll),
		answers: answers(http.StatusCreated, submitted{}, submittedIDs{}), refusals: codes(lessor.CodeConflict),
	}, {
		method: http.MethodGet, path: jobs, scope: token.ReadJobs, summary: "List jobs, newest first.",
		query:  []string{"state", "type", "tenant_id", "tag", "limit", "cursor"},
		handle: plain((*call).jobs), answers: answers(http.StatusOK, jobList{}),
	}, {
		method: http.MethodGet, path: job, scope: token.ReadJob,
		summary: "Show a job; with wait_ms when it has ended, or the time is up.",
		query:   []string{"wait_ms"},
		handle:  plain(byID(jobID, (*call).job)), answers: answers(http.StatusOK, lessor.Job{}),
		refusals: codes(lessor.CodeJobNotFound, lessor.CodeRateLimited),
	}, {
		method: http.MethodGet, path: job + "/events", scope: token.ReadJobs,
		summary: "Show a job's record, oldest first.",
		query:   []string{"limit", "cursor"},
		handle:  plain(byID(jobID, (*call).jobEvents)), answers: answers(http.StatusOK, eventList{}),
		refusals: codes(lessor.CodeJobNotFound),
	}, {
		method: http.MethodGet, path: job + "/journal", scope: token.ReadJob,
		summary: "Show a job's journal, oldest first.",
		query:   []string{"after", "limit"},
		handle:  plain(byID(jobID, (*call).journal)), answers: answers(http.StatusOK, journalList{}),
		refusals: codes(lessor.CodeJobNotFound),
	}, {
		method: http.MethodGet, path: job + "/output", scope: token.ReadJobs,
		summary: "Show what an attempt printed, by default the last; wait_ms waits for more.",
		query:   []string{"attempt", "fence", "stream", "offset", "wait_ms"},
		handle:  plain(byID(jobID, (*call).output)), answers: answers(http.StatusOK, lessor.Output{}),
		refusals: codes(lessor.CodeJobNotFound, lessor.CodeLeaseNotFound, lessor.CodeRateLimited),
	}, {
		method: http.MethodGet, path: job + "/why", scope: token.ReadJobs, summary: "Tell why a job does not run now.",
		handle: plain(byID(jobID, (*call).why)), answers: answers(http.StatusOK, lessor.Why{}),
		refusals: codes(lessor.CodeJobNotFound),
	}, {
		method: http.MethodPost, path: job + "/cancel", scope: token.Submit,
		summary: "Cancel a job: at once if it waits, through its worker if it runs; force ends its lease now.",
		handle:  takes(bodySmall, byIDWithBody(jobID, (*call).cancel)),
		answers: answers(http.StatusOK, lessor.Job{}), refusals: codes(lessor.CodeJobNotFound, lessor.CodeConflict),
	}, {
		method: http.MethodPost, path: job + "/retry", scope: token.Submit,
		summary: "Queue a job that ended without success once more, or make a waiting retry due now.",
		handle:  takes(bodySmall, byIDWithBody(jobID, (*call).retry)),
		answers: answers(http.StatusOK, lessor.Job{}), refusals: codes(lessor.CodeJobNotFound, lessor.CodeConflict),
	}, {
		method: http.MethodPost, path: job + "/answer", scope: token.Submit,
		summary: "Answer the question of a waiting job, which queues it. The same answer again changes nothing.",
		handle:  takes(bodyDialog, byIDWithBody(jobID, (*call).answerJob)),
		answers: answers(http.StatusOK, lessor.Job{}), refusals: codes(lessor.CodeJobNotFound, lessor.CodeConflict),
	}, {
		method: http.MethodPost, path: job + "/messages", scope: token.Submit,
		summary:  "Send a message to a job. Answers to heartbeats repeat it until the worker confirms it.",
		handle:   takes(bodyDialog, byIDWithBody(jobID, (*call).message)),
		answers:  answers(http.StatusCreated, lessor.Message{}),
		refusals: codes(lessor.CodeJobNotFound, lessor.CodeConflict),
	}}
}

func leaseRoutes(payloadLimit int64) []route {
	const leases, lease = scheduling + "/leases", scheduling + "/leases/{lease_id}"
	held := codes(lessor.CodeLeaseNotFound, lessor.CodeWorkerMismatch)
	return []route{{
		method: http.MethodPost, path: leases + "/request", scope: token.Lease,
		summary:  "Ask for work: a lease with its job, several if max_leases is given, or a denial.",
		handle:   takes(bodyRequest, (*call).requestLease),
		answers:  answers(http.StatusOK, granted{}, grantedAll{}, workGrants{}, lessor.Denial{}),
		refusals: codes(lessor.CodeRateLimited),
	}, {
		method: http.MethodPost, path: leases + "/turn", scope: token.Lease,
		summary: "End and extend leases of one worker and ask for others, all in one commit.",
		handle:  takes(bodyBatch, (*call).turn), answers: answers(http.StatusOK, turned{}),
		refusals: codes(lessor.CodeRateLimited),
	}, {
		method: http.MethodPost, path: leases + "/heartbeat", scope: token.Lease,
		summary: "Extend 1 to 1000 leases of one worker; each has a result of its own.",
		handle:  takes(bodyBeats, (*call).heartbeatAll), answers: answers(http.StatusOK, results[leaseExtended]{}),
	}, {
		method: http.MethodPost, path: leases + "/cancelled", scope: token.Lease,
		summary: "Wait until leases of a worker are cancelled, or ended by others; each is answered once.",
		handle:  takes(bodySmall, (*call).cancelled), answers: answers(http.StatusOK, lessor.StoppedLeases{}),
		refusals: codes(lessor.CodeRateLimited),
	}, {
		method: http.MethodPost, path: leases + "/complete", scope: token.Lease,
		summary: "End 1 to 1000 leases of one worker; each has a result of its own.",
		handle:  takes(bodyBatch, (*call).completeAll), answers: answers(http.StatusOK, results[leaseEnded]{}),
	}, {
		method: http.MethodPost, path: lease + "/heartbeat", scope: token.Lease,
		summary:  "Extend a lease, and report progress.",
		handle:   takes(bodyBeat, byIDWithBody(leaseID, (*call).heartbeat)),
		answers:  answers(http.StatusOK, lessor.HeartbeatAnswer{}),
		refusals: held,
	}, {
		method: http.MethodPost, path: lease + "/journal", scope: token.Lease,
		summary: "Append 1 to 100 entries to the journal of a leased job, all or none, and extend the lease. " +
			"An entry whose key is known is answered with its number.",
		handle:   takes(bodyJournal, byIDWithBody(leaseID, (*call).appendJournal)),
		answers:  answers(http.StatusOK, lessor.JournalAnswer{}),
		refusals: append(codes(lessor.CodeConflict), held...),
	}, {
		method: http.MethodPost, path: lease + "/output", scope: token.Lease,
		summary:  "Send a part of what the attempt prints. It does not extend the lease.",
		handle:   takes(bodyOutput, byIDWithBody(leaseID, (*call).keepOutput)),
		answers:  answers(http.StatusOK, lessor.OutputAnswer{}),
		refusals: held,
	}, {
		method: http.MethodPost, path: lease + "/complete", scope: token.Lease,
		summary:  "End an attempt: completed, failed, cancelled, or waiting for the answer to a question.",
		handle:   takes(payloadLimit+resultExtra, byIDWithBody(leaseID, (*call).complete)),
		answers:  answers(http.StatusOK, done{}),
		refusals: append(codes(lessor.CodeConflict), held...),
	}, {
		method: http.MethodPost, path: lease + "/release", scope: token.Lease,
		summary: "Give a lease back without costing the job an attempt.",
		handle:  takes(bodyBeat, byIDWithBody(leaseID, (*call).release)),
		answers: answers(http.StatusOK, done{}), refusals: held,
	}, {
		method: http.MethodPost, path: lease + "/revoke", scope: token.Revoke,
		summary: "End a worker's lease; the attempt fails with revoked.",
		handle:  takes(bodySmall, byIDWithBody(revokedID, (*call).revoke)), answers: answers(http.StatusOK, done{}),
		refusals: codes(lessor.CodeLeaseNotFound),
	}, {
		method: http.MethodGet, path: leases, scope: token.ReadLeases, summary: "List live leases, newest first.",
		query:  []string{"worker_id", "limit", "cursor"},
		handle: plain((*call).leases), answers: answers(http.StatusOK, leaseList{}),
	}}
}

func stateRoutes() []route {
	return []route{{
		method: http.MethodGet, path: scheduling + "/capacity", scope: token.ReadFigures,
		summary: "Show capacity and the busy rating.",
		handle:  plain((*call).capacity), answers: answers(http.StatusOK, lessor.Capacity{}),
	}, {
		method: http.MethodPut, path: scheduling + "/capacity", scope: token.SetCapacity,
		summary: "Change capacity: fields left out stay, null returns to the configuration.",
		handle:  takes(bodySmall, (*call).setCapacity, (*call).checkCapacity),
		answers: answers(http.StatusOK, lessor.Capacity{}),
	}, {
		method: http.MethodGet, path: scheduling + "/status", scope: token.Read,
		summary: "Show the scheduler on one screen.",
		handle:  plain((*call).status), answers: answers(http.StatusOK, lessor.Status{}),
	}, {
		method: http.MethodPut, path: scheduling + "/drain", scope: token.Drain,
		summary: "Stop or resume granting leases.",
		handle:  takes(bodySmall, (*call).drain), answers: answers(http.StatusOK, lessor.Status{}),
	}, {
		method: http.MethodGet, path: scheduling + "/workers", scope: token.Read,
		summary: "List the workers of the last five minutes, the last seen first.",
		query:   []string{"limit", "cursor"},
		handle:  plain((*call).workers), answers: answers(http.StatusOK, workerList{}),
	}, {
		method: http.MethodGet, path: scheduling + "/events", scope: token.Read, stream: true,
		summary: "Stream all records as server-sent events: record, and gap where some were left out. " +
			"Last-Event-ID is honoured as far as possible.",
		handle: plain((*call).events), answers: answers(http.StatusOK, "text/event-stream"),
		refusals: codes(lessor.CodeRateLimited),
	}, {
		method: http.MethodGet, path: "/health/live", scope: token.Public, unrated: true,
		summary: "Tell whether the process answers.",
		handle:  plain((*call).live), answers: answers(http.StatusOK, health{}),
	}, {
		method: http.MethodGet, path: "/health/ready", scope: token.Public, unrated: true,
		summary: "Tell whether requests can be answered.",
		handle:  plain((*call).ready), answers: answers(http.StatusOK, health{}),
	}, {
		method: http.MethodGet, path: "/metrics", scope: token.Observe, unrated: true,
		summary: "Show metrics in Prometheus' format.",
		handle:  plain((*call).metrics), answers: answers(http.StatusOK, "text/plain"),
	}, {
		method: http.MethodGet, path: "/openapi.json", scope: token.Describe,
		summary: "Describe this API (OpenAPI 3.1).",
		handle:  plain((*call).describe), answers: answers(http.StatusOK, "application/json"),
	}}
}

func adminRoutes() []route {
	return []route{{
		method: http.MethodPost, path: administration + "/tokens", scope: token.Administer,
		summary: "Make an access token; it is shown this once.",
		handle:  takes(bodySmall, (*call).makeToken), answers: answers(http.StatusCreated, tokenMade{}),
		refusals: codes(lessor.CodeConflict),
	}, {
		method: http.MethodGet, path: administration + "/tokens", scope: token.Administer,
		summary: "List access tokens, newest first, without their secrets.",
		query:   []string{"limit", "cursor"},
		handle:  plain((*call).listTokens), answers: answers(http.StatusOK, tokenList{}),
	}, {
		method: http.MethodDelete, path: administration + "/tokens/{id}", scope: token.Administer,
		summary: "Delete an access token, which ends it at once.",
		handle:  plain(byID(tokenID, (*call).deleteToken)), answers: answers(http.StatusNoContent, nil),
		refusals: codes(lessor.CodeTokenNotFound),
	}, {
		method: http.MethodGet, path: administration + "/backup", scope: token.Administer, stream: true,
		summary: "Stream a consistent copy of the store (SQLite).",
		handle:  plain((*call).backup), answers: answers(http.StatusOK, "application/vnd.sqlite3"),
		refusals: codes(lessor.CodeConflict), // on PostgreSQL
	}, {
		method: http.MethodGet, path: administration + "/doctor", scope: token.Administer,
		summary: "Check the store's health.",
		handle:  plain((*call).doctor), answers: answers(http.StatusOK, findings{}),
	}}
}
