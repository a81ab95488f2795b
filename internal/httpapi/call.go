package httpapi

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/telemetry"
)

// call is one request from the mux to its answer.
type call struct {
	api    *API
	w      *writer
	r      *http.Request
	route  *route // nil until the mux has found it
	trace  trace
	caller scheduler.Caller
	query  url.Values
	bytes  int64 // of the body, counted against maxBodies
	unread bool  // the body was refused before it was read
	seen   *telemetry.Request
	span   telemetry.CallSpan
}

// writer remembers the status of the answer.
type writer struct {
	http.ResponseWriter
	call   *call
	status int // 0 = nothing was sent yet
}

func (w *writer) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// run checks access and query of a call and runs the handler of its route.
func (c *call) run() error {
	if c.route.unrated {
		c.seen.Ignore()
	}
	caller, err := c.api.identify(c.r, c.route.scope)
	if err != nil {
		return err
	}
	c.beginSpan()
	c.caller = caller
	c.caller.TraceID, c.caller.Traced = c.trace.id, c.trace.given != ""
	c.caller.Agent = shorten(strings.ToValidUTF8(c.r.UserAgent(), ""), maxAgent)
	if wanted := c.r.Header.Values("If-Match"); c.route.versioned && wanted != nil {
		c.caller.IfMatch = cmp.Or(strings.Join(wanted, ","), `""`) // an empty one matches nothing
	}
	if c.route.versioned && c.route.method != http.MethodGet {
		c.caller.IfNoneMatch = strings.Join(c.r.Header.Values("If-None-Match"), ",")
	}
	if err := c.readQuery(); err != nil {
		return err
	}
	if c.route.stream {
		c.deadlines(time.Time{}, time.Time{})
	}
	return c.route.handle.run(c)
}

// maxAgent bounds the part of a User-Agent that is kept.
const maxAgent = 200

// deadlines replaces the server's time limits for this request; the zero time is none. A test's recorder has none, and
// the errors are ignored.
func (c *call) deadlines(read, write time.Time) {
	rc := http.NewResponseController(c.w)
	_ = rc.SetReadDeadline(read)
	_ = rc.SetWriteDeadline(write)
}

// encoding passes payloads on as they were sent, also with escapes that JSON permits but that are no characters.
var encoding = json.JoinOptions(jsontext.PreserveRawStrings(true), jsontext.AllowInvalidUTF8(true),
	jsontext.AllowDuplicateNames(true))

// answer sends v as JSON.
func (c *call) answer(status int, v any) error {
	return c.send(status, "application/json", v)
}

// answerVersion sends a definition, a tenant or a class, with its version; not to a reader that has it.
func (c *call) answerVersion(status int, v any) error {
	version := rules.VersionOf(v)
	c.w.Header().Set("ETag", `"`+version+`"`)
	known := strings.Join(c.r.Header.Values("If-None-Match"), ",")
	if c.route.method == http.MethodGet && known != "" && rules.Match(known, version) == nil {
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return c.answer(status, v)
}

func (c *call) send(status int, contentType string, v any) error {
	buffer, _ := buffers.Get().(*[]byte)
	b, err := encode((*buffer)[:0], v)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	h := c.w.Header()
	h["Content-Type"] = []string{contentType}
	h["Content-Length"] = []string{strconv.Itoa(len(b))} // so that the client has it whole before the handler ends
	c.w.WriteHeader(status)
	_, _ = c.w.Write(b) // an error means that the client is gone
	if *buffer = b; cap(b) <= maxBuffer {
		buffers.Put(buffer)
	}
	return nil
}

// done is the answer of a call without a result.
type done struct {
	OK bool `json:"ok"`
}

// jobID returns the id in the path. An ill-formed id names no job.
func (c *call) jobID() (lessor.JobID, error) {
	u, err := lessor.ParseUUID(c.r.PathValue("job_id"))
	if err != nil {
		return lessor.JobID{}, lessor.ErrJobNotFound
	}
	return lessor.JobID{UUID: u}, nil
}

// leaseID returns the id in the path. An ill-formed id names no lease.
func (c *call) leaseID() (lessor.LeaseID, error) {
	u, err := lessor.ParseUUID(c.r.PathValue("lease_id"))
	if err != nil {
		return lessor.LeaseID{}, lessor.ErrLeaseNotFound
	}
	return lessor.LeaseID{UUID: u}, nil
}
