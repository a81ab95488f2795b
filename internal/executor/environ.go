package executor

import (
	"slices"
	"strconv"
	"strings"

	"lessor"
	"lessor/internal/sentinel"
)

// usual are the variables that every command gets. No other variable of the Runner reaches it, because its
// environment may hold the token and other secrets.
var usual = []string{"PATH", "HOME", "LANG", "TZ", "TMPDIR"}

// network are the variables that the shim needs to reach the server as the Runner does, and its user's systemd.
var network = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS",
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
		"LESSOR_WORKER=" + g.Lease.WorkerID,
		"LESSOR_FENCE=" + strconv.FormatInt(g.Lease.Fence, 10),
		"LESSOR_ATTEMPT=" + strconv.Itoa(g.Job.Attempt),
		"LESSOR_SESSION_ID=" + sentinel.SessionOf(g.Job.ID, g.Job.Payload),
		"LESSOR_PAYLOAD_FILE=" + f.Join(payloadName),
		"LESSOR_RESULT_FILE=" + f.Join(resultName),
		"LESSOR_CHECKPOINT_FILE=" + f.Join(checkpointName),
		"LESSOR_MESSAGES_FILE=" + f.Join(messagesName),
	}
}
