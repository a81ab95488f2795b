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

// reply sends the result of a call, or returns its error.
func (c *call) reply(v any, err error) error {
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, v)
}

// replyVersion is reply for a value that has a version.
func (c *call) replyVersion(v any, err error) error {
	if err != nil {
		return err
	}
	return c.answerVersion(http.StatusOK, v)
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

// byID is a handler that gets the id in the path, which find reads.
func byID[ID any](find func(*call) (ID, error), h func(*call, ID) error) func(*call) error {
	return func(c *call) error {
		id, err := find(c)
		if err != nil {
			return err
		}
		return h(c, id)
	}
}

// byIDWithBody is byID for a handler that also takes a body.
func byIDWithBody[ID, T any](find func(*call) (ID, error), h func(*call, ID, *T) error) func(*call, *T) error {
	return func(c *call, body *T) error {
		return byID(find, func(c *call, id ID) error { return h(c, id, body) })(c)
	}
}

// pathID reads the id that the path has under name. An ill-formed id names nothing, which the error missing says.
func pathID[ID ~struct{ lessor.UUID }](name string, missing error) func(*call) (ID, error) {
	return func(c *call) (ID, error) {
		u, err := lessor.ParseUUID(c.r.PathValue(name))
		if err != nil {
			return ID{}, missing
		}
		return ID{u}, nil
	}
}

// The ids in paths.
var (
	jobID     = pathID[lessor.JobID]("job_id", lessor.ErrJobNotFound)
	watchedID = pathID[lessor.JobID]("jobId", lessor.ErrJobNotFound)
	leaseID   = pathID[lessor.LeaseID]("lease_id", lessor.ErrLeaseNotFound)
	revokedID = pathID[lessor.LeaseID]("lease_id", scheduler.ErrNoLease)
	runID     = pathID[lessor.JobID]("runId", lessor.ErrRunNotFound)
	alertID   = pathID[lessor.AlertID]("alertId", lessor.ErrAlertNotFound)
	tokenID   = pathID[lessor.TokenID]("id", lessor.ErrTokenNotFound)
	tenantID  = pathID[lessor.TenantID]("tenantId", errNoTenant)
)
