package dashboard

import (
	"net/http"
	"strings"
	"time"

	"lessor"
	"lessor/internal/scheduler"
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
		return v.wrong("", "This link was used before, or is older than ten minutes. Log in with a token.")
	}
	t, ok := v.tokens.Valid(hash, lessor.At(time.Now()))
	if !ok {
		return v.wrong("", "The token of this link is no longer valid. Log in with another.")
	}
	return v.admit(t, "")
}

// login takes a token.
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

// admit begins a session. One that was there before ends, so that nobody goes on under a cookie that was planted.
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

// home is the first page that somebody with a role may see.
func home(role token.Role) string {
	switch {
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
	if err := v.forget(); err != nil {
		return err
	}
	v.setCookie(cookieName, "", 0)
	v.redirect("/login")
	return nil
}

// forget ends the visitor's session, if there is one: a cookie that anybody could have made up ends none.
func (v *visit) forget() error {
	if v.held == nil {
		return nil
	}
	t, _ := parseTicket(v.cookie()) // held, so it is one
	v.sessions.forget(t)
	return v.scheduler.EndSession(v.r.Context(), t.token, t.key())
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
