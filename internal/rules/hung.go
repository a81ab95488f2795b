package rules

import (
	"fmt"
	"strings"

	"lessor"
)

// folderHeld ends the message of an alert about a folder, and tells it from those of a monitor that sees the pulse of
// a hung command.
const folderHeld = "an earlier attempt holds its folder and does not end"

// FolderHeld returns the alert about a job that its worker could not start because an earlier attempt holds its
// folder.
func FolderHeld(h *Held) lessor.Alert {
	return lessor.Alert{
		Kind: lessor.AlertHung, Subject: h.Turn.Job.String(), TenantID: h.Tenant,
		Message: fmt.Sprintf("job %s cannot be started by %s: %s", h.Turn.Job, h.Worker, folderHeld),
	}
}

// IsFolderHeld reports whether a is such an alert. Its condition ends when the job runs again or has ended.
func IsFolderHeld(a lessor.Alert) bool {
	return a.Kind == lessor.AlertHung && strings.HasSuffix(a.Message, folderHeld)
}
