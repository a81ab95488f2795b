package dashboard

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"lessor"
	"lessor/internal/httpapi"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/token"
)

// maxForm bounds the body of a form, in bytes.
const maxForm = 16 << 10

// visit is one request for a page.
type visit struct {
	*Dashboard
	w       http.ResponseWriter
	r       *http.Request
	visitor httpapi.Visitor
	held    *scheduler.Token // the token of the session; nil = none
	caller  scheduler.Caller
	form    url.Values // the fields of a POST
}

var (
	errLogin   = &lessor.Error{Code: lessor.CodeUnauthenticated, Detail: "this needs an access token"}
	errBadForm = &lessor.Error{Code: lessor.CodeInvalidRequest, Detail: "the form cannot be read"}

	errStarting = &lessor.Error{
		Code: lessor.CodeUnavailable, Detail: "The server is starting. Try again in a moment.", RetryAfter: time.Second,
	}
)

// answer returns the handler of a route: it identifies the visitor, checks the scope, and shows a refusal.
func (d *Dashboard) answer(scope token.Scope, do func(*visit) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := &visit{Dashboard: d, w: w, r: r}
		v.visitor, _ = r.Context().Value(visitorKey{}).(httpapi.Visitor)
		err := v.enter(scope)
		if err == nil {
			err = do(v)
		}
		if err != nil {
			v.refuse(err)
		}
	}
}

// enter reads the form, identifies the visitor and checks the scope.
func (v *visit) enter(scope token.Scope) (err error) {
	if v.r.Method == http.MethodPost {
		body, err := io.ReadAll(http.MaxBytesReader(v.w, v.r.Body, maxForm))
		if err != nil {
			return errBadForm
		}
		if v.form, err = url.ParseQuery(string(body)); err != nil {
			return errBadForm
		}
	}
	if scope != token.Public && !v.tokens.Loaded() {
		return errStarting // nobody's session can be checked yet
	}
	held, given, err := v.session()
	if err != nil && scope != token.Public { // a visitor whose session cannot be checked can still log in
		return err
	}
	v.held = held
	if given && v.held == nil && scope != token.Public {
		v.setCookie(cookieName, "", 0) // it will never be valid again
		if wrong := v.tokens.Wrong(v.visitor.From, time.Now()); lessor.CodeOf(wrong) == lessor.CodeRateLimited {
			return wrong
		}
	}
	v.caller, err = v.may(scope)
	return err
}

// may returns the visitor as a caller of the scheduler, or refuses the scope.
func (v *visit) may(scope token.Scope) (scheduler.Caller, error) {
	switch {
	case scope == token.Public:
		return scheduler.Caller{Actor: rules.ActorAnonymous}, nil
	case v.held != nil:
		return httpapi.Holder(*v.held, scope)
	case v.visitor.Local && token.Operator.Allows(scope) && !scope.NeedsToken():
		return scheduler.Caller{Actor: rules.ActorLocal}, nil
	}
	return scheduler.Caller{}, errLogin
}

// can reports whether the visitor may use a scope. Pages hide buttons that would be refused.
func (v *visit) can(scope token.Scope) bool {
	_, err := v.may(scope)
	return err == nil
}

// known reports whether the visitor has a session or is on this machine.
func (v *visit) known() bool { return v.held != nil || v.visitor.Local }

// refuse shows an error. It redirects an unknown visitor to the login; the script of an open page gets the error.
func (v *visit) refuse(err error) {
	var e *lessor.Error
	if !errors.As(err, &e) || e.Code == lessor.CodeInternal {
		if v.r.Context().Err() != nil {
			return // the visitor is gone
		}
		v.log.LogAttrs(v.r.Context(), slog.LevelError, "page failed",
			slog.String("error", err.Error()), slog.String("trace_id", v.visitor.TraceID))
		detail := "Something went wrong here; the server's log has it under trace id " + v.visitor.TraceID + "."
		e = &lessor.Error{Code: lessor.CodeInternal, Detail: detail}
	}
	if e == errLogin && !v.known() && v.r.Method == http.MethodGet && !v.live() {
		v.redirect("/login?next=" + url.QueryEscape(v.r.URL.RequestURI()))
		return
	}
	status := httpapi.Status(e.Code)
	title, ok := refusals[status]
	if !ok {
		title = http.StatusText(status)
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		v.w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(e.RetryAfter.Seconds())))))
	}
	noRight := status == http.StatusUnauthorized || status == http.StatusForbidden
	p := refused{Error: e, Login: v.held == nil && noRight}
	switch {
	case v.r.Method == http.MethodPost:
		p.Back = v.section()
	case v.r.URL.RawQuery != "" && status != http.StatusNotFound:
		p.Unfiltered = v.r.URL.Path
	}
	_ = v.write(status, view{title, "refused", p}) // tests show that it can be rendered
}

// refused is the page of an error, with links to where the visitor can go.
type refused struct {
	Error      *lessor.Error
	Login      bool   // a token might help
	Back       string // the page of the form
	Unfiltered string // the same page without its filter
}

// refusals are titles for people who need not know HTTP.
var refusals = map[int]string{
	http.StatusBadRequest:          "This cannot be read",
	http.StatusUnauthorized:        "Please log in",
	http.StatusForbidden:           "Not allowed",
	http.StatusNotFound:            "Not found",
	http.StatusConflict:            "Not possible now",
	http.StatusUnprocessableEntity: "This value does not work",
	http.StatusTooManyRequests:     "Too much at once",
	http.StatusInternalServerError: "Something went wrong",
	http.StatusServiceUnavailable:  "The store cannot be reached",
}

func (v *visit) redirect(to string) { http.Redirect(v.w, v.r, to, http.StatusSeeOther) }

// back redirects to the page of a form, with a message about what was done.
func (v *visit) back(fallback, said string) error {
	to := v.form.Get("back")
	if !isOwn(to) {
		to = fallback
	}
	u, err := url.Parse(to)
	if err != nil {
		return errBadForm
	}
	q := u.Query()
	q.Set("said", said)
	u.RawQuery = q.Encode()
	v.redirect(u.String())
	return nil
}

// isOwn reports whether an address is a path on this server.
func isOwn(to string) bool {
	return len(to) < 2000 && strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//") &&
		!strings.ContainsAny(to, "\\\r\n\t")
}

// render sends a whole page, or only its changing part to a page that follows the scheduler. That part is rendered once
// a second for all visitors with the same rights.
func (v *visit) render(show func(*visit) (view, error)) error {
	if !v.live() {
		shown, err := show(v)
		if err != nil {
			return err
		}
		return v.write(http.StatusOK, shown)
	}
	p, err := v.cache.get(v.rights()+" "+v.r.URL.RequestURI(), v.changes.Load(), func() ([]byte, error) {
		shown, err := show(v)
		if err != nil {
			return nil, err
		}
		return v.execute(v.templates.timeless, "main", shown)
	})
	if err != nil {
		return err
	}
	v.sendPart(p)
	return nil
}

// live reports whether the script of an open page asks for the page's changing part.
func (v *visit) live() bool { return v.r.Header.Get(liveHeader) != "" }

// rights names the rights that a page depends on.
func (v *visit) rights() string {
	switch {
	case v.held == nil:
		return "local"
	case token.Role(v.held.Role) == token.Worker: // it sees only the leases that were granted to it
		return v.held.Role + "#" + v.held.ID.String()
	case v.held.Tenant != nil:
		return v.held.Role + "@" + v.held.Tenant.String()
	}
	return v.held.Role
}

func (v *visit) write(status int, shown view) error {
	body, err := v.execute(v.templates.pages, "layout", shown)
	if err != nil {
		return err
	}
	v.sendPacked(status, "text/html; charset=utf-8", compress(body))
	return nil
}

func (v *visit) execute(from templates, part string, shown view) ([]byte, error) {
	var b bytes.Buffer
	if err := from[shown.template].ExecuteTemplate(&b, part, v.layout(shown)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
