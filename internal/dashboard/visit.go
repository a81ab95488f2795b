package dashboard

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"lessor"
	"lessor/internal/httpapi"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/token"
)

// maxForm bounds the body of a form, in bytes. A field takes 8192 UTF-16 units of up to 3 bytes, and each byte is sent
// as %XX.
const maxForm = 80 << 10

// visit is one request for a page.
type visit struct {
	*Dashboard
	w       http.ResponseWriter
	r       *http.Request
	visitor httpapi.Visitor
	held    *scheduler.Token // the token of the session; nil = none
	caller  scheduler.Caller
	form    url.Values // the fields of a POST
	problem *problem   // what was wrong with the form of this page
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
		v.problem, _ = r.Context().Value(problemKey{}).(*problem)
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
		if err := v.readForm(); err != nil {
			return err
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
	v.caller.TraceID = v.visitor.TraceID
	return err
}

// readForm reads the fields of a form. A choice is escaped, because browsers send other line breaks than it has.
func (v *visit) readForm() error {
	body, err := io.ReadAll(http.MaxBytesReader(v.w, v.r.Body, maxForm))
	if err != nil {
		return errBadForm
	}
	if v.form, err = url.ParseQuery(string(body)); err != nil {
		return errBadForm
	}
	if v.form.Has("choice") {
		answer, err := url.QueryUnescape(v.form.Get("choice"))
		if err != nil {
			return errBadForm
		}
		v.form.Set("answer", answer)
	}
	return nil
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

func (v *visit) redirect(to string) { http.Redirect(v.w, v.r, to, http.StatusSeeOther) }

// isOwn reports whether an address is a path on this server.
func isOwn(to string) bool {
	return len(to) < 2000 && strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//") &&
		!strings.ContainsAny(to, "\\\r\n\t")
}

// render sends a whole page, or only its changing part to a page that follows the scheduler. That part is rendered once
// a second for all visitors with the same rights.
func (v *visit) render(show func(*visit) (view, error)) error {
	if !v.live() {
		return v.whole(show)
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

// whole sends a whole page. If the filter in its address is refused, the page says so, and keeps its form.
func (v *visit) whole(show func(*visit) (view, error)) error {
	shown, err := show(v)
	var e *lessor.Error
	if errors.As(err, &e) && shown.template != "" && v.r.URL.RawQuery != "" &&
		httpapi.Status(e.Code) == http.StatusUnprocessableEntity {
		v.problem, err = &problem{Error: e, Status: httpapi.Status(e.Code), Unfiltered: v.r.URL.Path}, nil
	}
	switch {
	case err != nil:
		return err
	case v.problem != nil:
		return v.write(v.problem.Status, shown)
	}
	return v.write(http.StatusOK, shown)
}

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
	l := v.layout(shown)
	if part == "layout" {
		l.Message, l.Problem = v.message(), v.problem
	}
	if err := from[shown.template].ExecuteTemplate(&b, part, l); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
