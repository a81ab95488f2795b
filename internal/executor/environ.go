package executor

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"lessor"
	"lessor/internal/sentinel"
)

// usual are the variables that every command gets. No other variable of the Runner reaches it, because its
// environment may hold the token and other secrets.
var usual = []string{"PATH", "HOME", "LANG", "TZ", "TMPDIR"}

// network are the variables that the shim needs to reach the server as the Runner does.
var network = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
}

// allowed returns the usual variables of environ and those that are named.
func allowed(environ, names []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return !slices.Contains(usual, name) && !strings.HasPrefix(name, "LC_") && !slices.Contains(names, name)
	})
}

// variables are the variables that describe the job to its command.
func variables(f *sentinel.Folder, g lessor.Grant) []string {
	return []string{
		"LESSOR_JOB_ID=" + g.Job.ID.String(),
		"LESSOR_LEASE_ID=" + g.Lease.ID.String(),
		"LESSOR_FENCE=" + strconv.FormatInt(g.Lease.Fence, 10),
		"LESSOR_ATTEMPT=" + strconv.Itoa(g.Job.Attempt),
		"LESSOR_SESSION_ID=" + sessionID(g.Job),
		"LESSOR_PAYLOAD_FILE=" + f.Join(payloadName),
		"LESSOR_RESULT_FILE=" + f.Join(resultName),
		"LESSOR_CHECKPOINT_FILE=" + f.Join(checkpointName),
	}
}

// sessionID returns the session_id of the payload if it can name a file, else the id of the job.
func sessionID(j lessor.Job) string {
	var payload struct {
		SessionID any `json:"session_id"`
	}
	if err := json.Unmarshal(j.Payload, &payload); err == nil {
		if s, ok := payload.SessionID.(string); ok && sentinel.IsSessionID(s) {
			return s
		}
	}
	return j.ID.String()
}
