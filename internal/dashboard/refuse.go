package dashboard

import (
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
	path       string     // of the form that was refused
	typed      url.Values // what the visitor typed into it
}

type problemKey struct{}

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
	if !noRight && v.refuseInPlace(e, status) {
		return
	}
	title, ok := refusals[status]
	if !ok {
		title = http.StatusText(status)
	}
	p := refused{Error: e, Login: v.held == nil && noRight}
	switch {
	case v.r.Method == http.MethodPost:
		p.Back = v.section()
	case v.r.URL.RawQuery != "" && status != http.StatusNotFound:
		p.Unfiltered = v.r.URL.Path
	}
	_ = v.write(status, view{title, "refused", p}) // tests show that it can be rendered
}

// refuseInPlace shows the page of a refused form, with the error and what was typed. It reports whether the form named
// its page.
func (v *visit) refuseInPlace(e *lessor.Error, status int) bool {
	if v.r.Method != http.MethodPost || !isOwn(v.form.Get("back")) {
		return false
	}
	address, err := url.Parse(v.form.Get("back"))
	if err != nil {
		return false
	}
	p := &problem{Error: e, Status: status, path: v.r.URL.Path, typed: v.form}
	r := v.r.Clone(context.WithValue(v.r.Context(), problemKey{}, p))
	r.Method, r.URL, r.Body = http.MethodGet, address, http.NoBody
	_, pattern := v.mux.Handler(r)
	if _, ok := pages[strings.TrimPrefix(pattern, "GET ")]; !ok {
		return false
	}
	v.mux.ServeHTTP(v.w, r)
	return true
}
