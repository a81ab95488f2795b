package dashboard

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"lessor"
	"lessor/internal/httpapi"
	"lessor/internal/rules"
	"lessor/internal/token"
)

// cookie returns the session cookie of the visitor's browser.
func (v *visitor) cookie() *http.Cookie {
	v.t.Helper()
	at, err := url.Parse(v.url)
	if err != nil {
		v.t.Fatal(err)
	}
	for _, c := range v.Jar.Cookies(at) {
		if c.Name == cookieName {
			return c
		}
	}
	return &http.Cookie{Name: cookieName}
}

// asks requests a page with a cookie from a dashboard, and returns the status.
func asks(d *Dashboard, c *http.Cookie) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/jobs", nil)
	r.AddCookie(c)
	w := httptest.NewRecorder()
	d.Serve(w, r, httpapi.Visitor{From: netip.MustParseAddr("192.0.2.1")})
	return w
}

func TestSessionsSurviveARestart(t *testing.T) {
	s := start(t, required)
	c := s.as(s.issue("viewer", "")).cookie()
	again := New(Config{Scheduler: s.scheduler, Tokens: s.tokens}) // like the dashboard of another process or node
	if w := asks(again, c); w.Code != http.StatusOK {
		t.Errorf("after a restart the session gets %d, want 200", w.Code)
	}
	forged := newTicket(must(parseTicket(c.Value)).token)
	w := asks(again, &http.Cookie{Name: cookieName, Value: forged.String()})
	if w.Code != http.StatusSeeOther || !strings.Contains(w.Header().Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("a secret that is not the session's gets %d %q, want a login and the cookie removed", w.Code,
			w.Header().Get("Set-Cookie"))
	}
}

// TestStartingServerEndsNoSession: a server that has not read its tokens yet cannot check a session.
func TestStartingServerEndsNoSession(t *testing.T) {
	s := start(t, required)
	c := s.as(s.issue("viewer", "")).cookie()
	starting := New(Config{Scheduler: s.scheduler, Tokens: token.NewBook(s.scheduler.Tokens)})
	if w := asks(starting, c); w.Code != http.StatusServiceUnavailable || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("while the server starts the session gets %d %q, want 503 and the cookie kept", w.Code,
			w.Header().Get("Set-Cookie"))
	}
}

// TestSessionIsOfItsTokenAlone: the secret of a session that was just used does not go with the id of another token.
func TestSessionIsOfItsTokenAlone(t *testing.T) {
	s := start(t, required)
	mine, admins := s.as(s.issue("viewer", "")).cookie(), s.as(s.admin).cookie()
	if w := asks(s.Dashboard, mine); w.Code != http.StatusOK {
		t.Fatalf("my own session gets %d, want 200", w.Code)
	}
	mixed := must(parseTicket(mine.Value))
	mixed.token = must(parseTicket(admins.Value)).token
	if w := asks(s.Dashboard, &http.Cookie{Name: cookieName, Value: mixed.String()}); w.Code != http.StatusSeeOther {
		t.Errorf("my secret with the id of the admin's token gets %d, want the login", w.Code)
	}
}

func must[T any](v T, ok bool) T {
	if !ok {
		panic("not ok")
	}
	return v
}

// TestLoginsEndSessionsOfTheirOwnTokenOnly: each token has its places, and the oldest of its own sessions gives way.
func TestLoginsEndSessionsOfTheirOwnTokenOnly(t *testing.T) {
	s := start(t, required)
	other, busy := s.as(s.issue("viewer", "")), s.issue("viewer", "")
	first := s.as(busy)
	for range rules.MaxSessions - 1 {
		s.as(busy)
	}
	sees := func(v *visitor) bool {
		return asks(New(Config{Scheduler: s.scheduler, Tokens: s.tokens}), v.cookie()).Code == http.StatusOK
	}
	if !sees(first) {
		t.Errorf("with %d sessions of its token the first is over", rules.MaxSessions)
	}
	if last := s.as(busy); sees(first) || !sees(last) || !sees(other) {
		t.Errorf("one more: the first lasts %v, the last %v, another token's %v; want false, true, true", sees(first),
			sees(last), sees(other))
	}
}

func TestSessionsEnd(t *testing.T) {
	s := start(t, required)
	v := s.as(s.admin)
	ticket := must(parseTicket(v.cookie().Value))
	for after, want := range map[time.Duration]bool{sessionLife - time.Minute: true, sessionLife + time.Minute: false} {
		if ok, err := s.sessions.find(t.Context(), ticket, time.Now().Add(after)); ok != want || err != nil {
			t.Errorf("after %v: lasts %v (%v), want %v", after, ok, err, want)
		}
	}
	c := v.cookie()
	v.post("/logout")
	if w := asks(New(Config{Scheduler: s.scheduler, Tokens: s.tokens}), c); w.Code == http.StatusOK {
		t.Error("the cookie works after the logout")
	}
}

// TestGuessesOfTheLoginAreCounted: wrong tokens, links and cookies count together, and a valid token is still accepted.
func TestGuessesOfTheLoginAreCounted(t *testing.T) {
	s := start(t, required)
	v := s.visitor()
	v.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	try := func(kind int) (status int, after string) {
		var r *http.Response
		var err error
		switch kind % 3 {
		case 0:
			r, err = v.PostForm(s.url+"/login", url.Values{"token": {"wrong"}})
		case 1:
			r, err = v.Get(s.url + "/login?code=wrong")
		default:
			ask, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/jobs", nil)
			ask.AddCookie(&http.Cookie{Name: cookieName, Value: newTicket(lessor.TokenID{}).String()})
			r, err = v.Do(ask)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		return r.StatusCode, r.Header.Get("Retry-After")
	}
	for n := range 20 {
		if status, _ := try(n); status != http.StatusUnauthorized && status != http.StatusSeeOther {
			t.Fatalf("wrong one %d: %d", n+1, status)
		}
	}
	for kind := range 3 {
		if status, after := try(kind); status != http.StatusTooManyRequests || after == "" {
			t.Errorf("one too many of kind %d: %d, Retry-After %q; want 429 and a time", kind, status, after)
		}
	}
	if status, _ := s.as(s.admin).get("/jobs"); status != http.StatusOK {
		t.Errorf("a right token from the same address: %d", status)
	}
	code := s.Code(token.Hash(s.admin))
	if status, _ := s.visitor().get("/login?code=" + code); status != http.StatusOK {
		t.Errorf("a right link from the same address: %d", status)
	}
}

func TestCookieIsSecureBehindATrustedProxy(t *testing.T) {
	s := start(t, required, func(c *httpapi.Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	})
	for proto, want := range map[string]bool{"https": true, "http": false, "": false} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/login",
			strings.NewReader("token="+s.admin))
		if proto != "" {
			r.Header.Set("X-Forwarded-Proto", proto)
		}
		w, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Body.Close()
		if c := w.Cookies(); len(c) != 1 || c[0].Secure != want {
			t.Errorf("X-Forwarded-Proto %q: cookie %v, want Secure %v", proto, c, want)
		}
	}
}
