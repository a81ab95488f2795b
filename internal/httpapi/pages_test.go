package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"lessor"
)

// Pages get the requests that no route answers, after the checks of every request, and learn whether the loopback rule
// holds.
func TestPagesAnswerWhatNoRouteHas(t *testing.T) {
	asked := map[string]bool{}
	s := start(t, func(c *Config) {
		c.Pages = func(w http.ResponseWriter, r *http.Request, v Visitor) bool {
			asked[r.URL.Path] = v.Local
			if r.URL.Path != "/page" {
				return false
			}
			w.WriteHeader(http.StatusTeapot)
			return true
		}
	})
	send := func(path string, edit ...func(*http.Request)) int {
		r, w := request(http.MethodGet, path, ""), httptest.NewRecorder()
		for _, e := range edit {
			e(r)
		}
		s.ServeHTTP(w, r)
		return w.Code
	}
	if got := send("/page"); got != http.StatusTeapot || !asked["/page"] {
		t.Errorf("a page is answered %d, local %v", got, asked["/page"])
	}
	if got := send("/page", header("X-Forwarded-For", "192.0.2.1")); got != http.StatusTeapot || asked["/page"] {
		t.Errorf("a page through a proxy is answered %d, local %v", got, asked["/page"])
	}
	clear(asked)
	for name, edit := range map[string]func(*http.Request){
		"another's name": func(r *http.Request) { r.Host = "evil.example" },
		"another's page": func(r *http.Request) {
			r.Method = http.MethodPost
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		},
		"an unclean path": func(r *http.Request) { r.URL.Path = "/a//b" },
	} {
		if got := send("/page", edit); got == http.StatusTeapot || len(asked) > 0 {
			t.Errorf("%s: %d, pages asked: %v", name, got, asked)
		}
	}
	if send(scheduling + "/status"); len(asked) > 0 {
		t.Errorf("the pages were asked for a route of the API: %v", asked)
	}
	refused(t, s.call(http.MethodGet, "/nothing", ""), http.StatusNotFound, lessor.CodeRouteNotFound)
}
