package dashboard

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"lessor"
	"lessor/internal/httpapi"
)

// problem is an error that a page shows above the form that caused it.
type problem struct {
	Error      *lessor.Error
	Status     int
	Unfiltered string     // the page without its filter; "" = the filter is not to blame
	About      outcome    // the object, if the page may not show it
	path       string     // of the form that was refused
	typed      url.Values // what the visitor typed into it
}

// Wrote returns the text that was not sent.
func (p *problem) Wrote() string { return cmp.Or(p.typed.Get("text"), p.typed.Get("answer")) }

// about is a refusal with the object that it is about.
type about struct {
	error
	outcome
}

func (a *about) Unwrap() error { return a.error }

// refusal returns an error about a job, with a link to the job if it still exists.
func (v *visit) refusal(id lessor.JobID, err error) error {
	if errors.Is(err, lessor.ErrJobNotFound) {
		return err
	}
	return &about{err, v.aboutJob("", id)}
}

// gone replaces the refusals of objects that ended or were removed after the page had shown them: a page is for people,
// and what the API says is for workers.
var gone = map[lessor.Code]string{
	lessor.CodeLeaseNotFound:      "this lease has ended; nothing was done",
	lessor.CodeJobNotFound:        "this job is no longer kept; nothing was done",
	lessor.CodeDefinitionNotFound: "this definition was deleted; nothing was done",
	lessor.CodeAlertNotFound:      "this alert is no longer kept; nothing was done",
}

type problemKey struct{}

// refused is the page of an error, with links to where the visitor can go.
type refused struct {
	Error      *lessor.Error
	Login      bool   // a token might help
	Back       string // the page of the form
	Unfiltered string // the same page without its filter
	Wrote      string // the text that was not sent
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

// refuse shows an error: on the page of the form, or on its own. It redirects an unknown visitor to the login; the
// script of an open page gets the error.
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
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		v.w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(e.RetryAfter.Seconds())))))
	}
	noRight := status == http.StatusUnauthorized || status == http.StatusForbidden
	if !noRight && v.refuseInPlace(err, e, status) {
		return
	}
	title, ok := refusals[status]
	if !ok {
		title = http.StatusText(status)
	}
	p := refused{Error: e, Login: v.held == nil && noRight, Wrote: (&problem{typed: v.form}).Wrote()}
	switch {
	case v.r.Method == http.MethodPost:
		p.Back = v.section()
	case v.r.URL.RawQuery != "" && status != http.StatusNotFound:
		p.Unfiltered = v.r.URL.Path
	}
	_ = v.write(status, view{title, "refused", p}) // tests show that it can be rendered
}

// refuseInPlace shows the page of a refused form or question, with the error and what was typed. If that page is
// refused too, because its object is gone, it shows the list. It reports whether there is such a page.
func (v *visit) refuseInPlace(err error, e *lessor.Error, status int) bool {
	p, back := v.problem, ""
	switch {
	case p != nil:
		back = v.section()
	case v.r.Method == http.MethodPost:
		back = v.form.Get("back")
	case actions[strings.TrimPrefix(v.r.Pattern, "GET ")].ask != nil:
		back = v.origin(v.r.URL.Query(), v.section())
	}
	address, bad := url.Parse(back)
	if bad != nil || !isOwn(back) || p != nil && back == v.r.URL.Path {
		return false
	}
	if p == nil {
		p = newProblem(err, e, status)
		p.path, p.typed = v.r.URL.Path, v.form
	}
	r := v.r.Clone(context.WithValue(v.r.Context(), problemKey{}, p))
	r.Method, r.URL, r.Body = http.MethodGet, address, http.NoBody
	_, pattern := v.mux.Handler(r)
	if _, ok := pages[strings.TrimPrefix(pattern, "GET ")]; !ok {
		return false
	}
	v.mux.ServeHTTP(v.w, r)
	return true
}

func newProblem(err error, e *lessor.Error, status int) *problem {
	p := &problem{Error: e, Status: status}
	var a *about
	switch detail, over := gone[e.Code]; {
	case errors.As(err, &a):
		p.About = a.outcome
	case over:
		p.Error = &lessor.Error{Code: e.Code, Detail: detail}
	}
	return p
}
