package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"lessor"
)

var errNoRoute = &lessor.Error{
	Code: lessor.CodeRouteNotFound,
	Detail: "no such route: those of jobs and leases begin with /api/system/scheduler, those of schedules with " +
		"/api/kernel; /openapi.json lists all",
}

// place holds the routes of one path, by method.
type place map[string]*route

// newMux registers the table. Nothing else may register a pattern: TestOnlyTheTableMakesPatterns.
func newMux(table []route) *http.ServeMux {
	places := map[string]place{}
	for i := range table {
		rt := &table[i]
		if places[rt.path] == nil {
			places[rt.path] = place{}
		}
		places[rt.path][rt.method] = rt
	}
	mux := http.NewServeMux()
	for path, p := range places {
		mux.Handle(path, p)
	}
	if places["/"] == nil {
		mux.Handle("/", place(nil))
	}
	return mux
}

// ServeHTTP finds the route by its method. It is called by the mux, inside API.ServeHTTP.
func (p place) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	own, ok := w.(*writer)
	if !ok {
		panic("only the API may serve the mux")
	}
	c, method := own.call, r.Method
	if method == http.MethodHead && p[http.MethodGet] != nil && !p[http.MethodGet].stream {
		method = http.MethodGet
	}
	rt, ok := p[method]
	switch {
	case len(p) == 0:
		if err := c.page(); err != nil {
			c.refuse(err)
		}
	case !ok:
		allowed := strings.Join(p.methods(), ", ")
		w.Header().Set("Allow", allowed)
		detail := "this route has no " + shorten(r.Method, 20) + ", only " + allowed
		c.refuse(&lessor.Error{Code: lessor.CodeMethodNotAllowed, Detail: detail})
	default:
		c.route = rt
		if err := c.run(); err != nil {
			c.refuse(err)
		}
	}
}

func (p place) methods() []string {
	ms := make([]string, 0, len(p)+1)
	for m, rt := range p {
		ms = append(ms, m)
		if m == http.MethodGet && !rt.stream {
			ms = append(ms, http.MethodHead)
		}
	}
	slices.Sort(ms)
	return ms
}

// isClean reports whether the mux would not redirect a path to another spelling. A redirect would hide the client's
// mistake.
func isClean(path string) bool {
	if !strings.HasPrefix(path, "/") || strings.Contains(path, "//") {
		return false
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// shorten cuts text from callers for answers and logs.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
