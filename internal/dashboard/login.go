package dashboard

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"time"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/token"
)

// loginPage is the login form.
type loginPage struct {
	Next   string
	Failed string
	Local  bool // the visitor needs no token for most pages
}

// Code returns a code that logs in once, within ten minutes, with the token of this hash: /login?code=….
func (d *Dashboard) Code(hash [32]byte) string { return d.codes.make(hash, time.Now()) }

// showLogin shows the form, or logs in with the code of a one-time link.
func (v *visit) showLogin() error {
	q := v.r.URL.Query()
	code := q.Get("code")
	if code == "" || v.r.Method != http.MethodGet { // a HEAD request must not use up the code
		return v.loginForm(http.StatusOK, q.Get("next"), "")
	}
	hash, ok := v.codes.use(code, time.Now())
	if !ok {
		return v.wrong("", "This link was used before, or is older than ten minutes. Log in with a token.")
	}
	t, ok := v.tokens.Valid(hash, lessor.At(time.Now()))
	if !ok {
		return v.wrong("", "The token of this link is no longer valid. Log in with another.")
	}
	return v.admit(t, "")
}

// login logs in with a token.
func (v *visit) login() error {
	t, ok := v.tokens.Find(strings.TrimSpace(v.form.Get("token")), lessor.At(time.Now()))
	if !ok {
		return v.wrong(v.form.Get("next"), "This token is not valid.")
	}
	return v.admit(t, v.form.Get("next"))
}

// wrong counts a wrong token or link, and shows the form again unless there were too many.
func (v *visit) wrong(next, why string) error {
	if err := v.tokens.Wrong(v.visitor.From, time.Now()); lessor.CodeOf(err) == lessor.CodeRateLimited {
		return err
	}
	return v.loginForm(http.StatusUnauthorized, next, why)
}

// admit begins a session. It ends the session of the request, whose cookie an attacker may have planted.
func (v *visit) admit(t scheduler.Token, next string) error {
	if err := v.forget(); err != nil {
		return err
	}
	mine := newTicket(t.ID)
	if err := v.scheduler.BeginSession(v.r.Context(), t.ID, mine.key(), sessionLife); err != nil {
		return err
	}
	v.setCookie(cookieName, mine.String(), sessionLife)
	if !isOwn(next) {
		next = home(token.Role(t.Role))
	}
	v.redirect(next)
	return nil
}

// home returns the first page that a role may see.
func home(role token.Role) string {
	for _, e := range menu {
		if role.Allows(pages[e.page].scope) {
			return e.Path
		}
	}
	return "/"
}

func (v *visit) loginForm(status int, next, failed string) error {
	return v.write(status, view{"Log in", "login", loginPage{Next: next, Failed: failed, Local: v.visitor.Local}})
}

func (v *visit) logout() error {
	if err := v.forget(); err != nil {
		return err
	}
	v.setCookie(cookieName, "", 0)
	v.redirect("/login")
	return nil
}

// forget ends the visitor's session if it is valid: a made-up cookie must not end one.
func (v *visit) forget() error {
	if v.held == nil {
		return nil
	}
	t, _ := parseTicket(v.cookie()) // cannot fail: the session is valid
	v.sessions.forget(t)
	return v.scheduler.EndSession(v.r.Context(), t.token, t.key())
}

const (
	themeCookie = "lessor_theme"
	themeLife   = 365 * 24 * time.Hour
)

// theme returns the visitor's choice: light, dark, or "" for the browser's preference.
func (v *visit) theme() string {
	if c, err := v.r.Cookie(themeCookie); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}

func (v *visit) setTheme() error {
	switch choice := v.form.Get("theme"); choice {
	case "light", "dark":
		v.setCookie(themeCookie, choice, themeLife)
	default:
		v.setCookie(themeCookie, "", 0)
	}
	to := v.form.Get("back")
	if !isOwn(to) {
		to = "/"
	}
	v.redirect(to)
	return nil
}

// codes are the codes of one-time links. Each is valid once, for one token, which is kept as a hash.
type codes struct {
	mu  sync.Mutex
	all map[[32]byte]code
}

type code struct {
	token [32]byte
	until time.Time
}

// make returns a new code, or "" if there are too many unused ones.
func (c *codes) make(token [32]byte, now time.Time) string {
	secret := random()[:22] // 132 bits, in a link that fits on a line
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[[32]byte]code{}
	}
	for hash, one := range c.all {
		if now.After(one.until) {
			delete(c.all, hash)
		}
	}
	if len(c.all) >= maxCodes {
		return ""
	}
	c.all[sha256.Sum256([]byte(secret))] = code{token, now.Add(codeLife)}
	return secret
}

// use removes a code and returns its token.
func (c *codes) use(secret string, now time.Time) (token [32]byte, ok bool) {
	hash := sha256.Sum256([]byte(secret))
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok := c.all[hash]
	delete(c.all, hash)
	return one.token, ok && now.Before(one.until)
}

// random returns 256 random bits as text.
func random() string {
	b := make([]byte, 32)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}
