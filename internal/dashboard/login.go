package dashboard

import (
	"net/http"
	"strings"
	"time"

	"lessor"
	"lessor/internal/token"
)

// loginPage is what the login shows.
type loginPage struct {
	Next   string
	Failed string
	Local  bool // goes on without a token
}

// Code returns a code that logs in once, within ten minutes, as the holder of the token with this hash: /login?code=….
func (d *Dashboard) Code(hash [32]byte) string { return d.codes.make(hash, time.Now()) }

// showLogin shows the form, or takes the code of a one-time link.
func (v *visit) showLogin() error {
	q := v.r.URL.Query()
	code := q.Get("code")
	if code == "" || v.r.Method != http.MethodGet { // who only asks for the headers looks, and does not come in
		return v.loginForm(http.StatusOK, q.Get("next"), "")
	}
	hash, ok := v.codes.use(code, time.Now())
	if !ok {
		return v.loginForm(http.StatusUnauthorized, "", "This link was used before, or is older than ten minutes. Log in with a token.")
	}
	return v.admit(hash, "")
}

// login takes a token.
func (v *visit) login() error {
	t, ok := v.tokens.Find(strings.TrimSpace(v.form.Get("token")), lessor.At(time.Now()))
	if !ok {
		return v.loginForm(http.StatusUnauthorized, v.form.Get("next"), "This token is not valid.")
	}
	return v.admit(t.Hash, v.form.Get("next"))
}

// admit begins a session. One that was there before ends, so that nobody goes on under a cookie that was planted.
func (v *visit) admit(hash [32]byte, next string) error {
	v.forget()
	v.setCookie(cookieName, v.sessions.begin(hash, time.Now()), sessionLife)
	if !isOwn(next) {
		next = v.home(hash)
	}
	v.redirect(next)
	return nil
}

// home is the first page that the holder of a token may see.
func (v *visit) home(hash [32]byte) string {
	t, _ := v.tokens.Valid(hash, lessor.At(time.Now()))
	switch role := token.Role(t.Role); {
	case role.Allows(token.Read):
		return "/"
	case role.Allows(token.ReadJobs):
		return "/jobs"
	}
	return "/leases"
}

func (v *visit) loginForm(status int, next, failed string) error {
	return v.write(status, view{"Log in", "login", loginPage{Next: next, Failed: failed, Local: v.visitor.Local}})
}

func (v *visit) logout() error {
	v.forget()
	v.setCookie(cookieName, "", 0)
	v.redirect("/login")
	return nil
}

func (v *visit) forget() {
	if c, err := v.r.Cookie(cookieName); err == nil {
		v.sessions.end(c.Value)
	}
}

const (
	themeCookie = "lessor_theme"
	themeLife   = 365 * 24 * time.Hour
)

// theme is the visitor's choice: light, dark, or "" for what the browser prefers.
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
