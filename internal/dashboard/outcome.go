package dashboard

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"lessor"
)

// outcome is a message about what an action did, and to which object. A cookie carries it to the next page, which
// shows it once: no link can make a page say something, and a reload does not repeat it.
type outcome struct {
	Kind string // a key of outcomeTexts
	Name string // of the object
	Link string // the object's page
}

// outcomeTexts has the message of each kind; % stands for the object.
var outcomeTexts = map[string]string{
	"cancelled":    "Cancelled %.",
	"withdrawn":    "Cancelled % before it ran.",
	"cancelling":   "The worker of % was asked to stop.",
	"retried":      "Queued % again.",
	"answered":     "Answered the question of %.",
	"sent":         "Sent the message to %.",
	"revoked":      "Revoked the lease of %.",
	"acknowledged": "Acknowledged: %.",
	"paused":       "Paused %.",
	"resumed":      "Resumed %.",
	"triggered":    "Created %.",
	"reset":        "Closed the circuit of %.",
	"set":          "Saved %.",
	"scanned":      "Scanned the workspace of %.",
	"dead":         "Marked % dead.",
	"requeued":     "Created %, which continues where the other job ended.",
	"draining":     "Draining: % are granted.",
	"drained":      "The drain has ended: % are granted again.",
}

const (
	outcomeCookie = "lessor_outcome"
	outcomeLife   = time.Minute // the next page follows at once
	maxName       = 200         // characters of a name in a message
)

// aboutJob returns a message about a job.
func (v *visit) aboutJob(kind string, id lessor.JobID) outcome {
	s := outcome{kind, "job " + short(id.String()), "/jobs/" + id.String()}
	if job, err := v.scheduler.Job(v.r.Context(), v.caller, id); err == nil {
		s.Name = job.Type + " " + short(id.String())
	}
	return s
}

func aboutSchedule(kind, id string) outcome {
	return outcome{kind, id, "/schedules/" + url.PathEscape(id)}
}

// back redirects to the page of a form, with a message about what was done.
func (v *visit) back(fallback string, s outcome) error {
	if name := []rune(s.Name); len(name) > maxName {
		s.Name = string(name[:maxName]) + "…"
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	v.setCookie(outcomeCookie, base64.RawURLEncoding.EncodeToString(raw), outcomeLife)
	v.redirect(v.origin(v.form, fallback))
	return nil
}

// origin returns the page that a form is on.
func (v *visit) origin(fields url.Values, fallback string) string {
	if to := fields.Get("back"); isOwn(to) {
		return to
	}
	return fallback
}

// message is an outcome as a page shows it.
type message struct {
	outcome
	Before, After string // the text around the object
	Undo          string // the form that takes it back; "" = none
}

// message takes the message from the visitor's cookie, so that one page shows it; nil = there is none.
func (v *visit) message() *message {
	c, err := v.r.Cookie(outcomeCookie)
	if err != nil || c.Value == "" {
		return nil
	}
	v.setCookie(outcomeCookie, "", 0)
	raw, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return nil
	}
	var m message
	err = json.Unmarshal(raw, &m.outcome)
	text, known := outcomeTexts[m.Kind]
	if err != nil || !known || !isOwn(m.Link) {
		return nil
	}
	m.Before, m.After, _ = strings.Cut(text, "%")
	if m.Kind == "withdrawn" {
		m.Undo = m.Link + "/retry"
	}
	return &m
}
