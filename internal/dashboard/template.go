package dashboard

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"lessor"
)

//go:embed templates static
var files embed.FS

// maxBrief bounds what a list shows of a text, in characters: three or four lines of a column.
const maxBrief = 160

// templates are the templates of the pages, by name.
type templates map[string]*template.Template

// parse reads the template of every page, each with the layout and the shared parts. timed says whether ages and
// countdowns are part of the text. A changing part leaves them out: they are different in every second, and the page
// counts by itself.
func parse(timed bool) templates {
	funcs := template.FuncMap{
		"age": age, "due": due, "instant": instant, "iso": iso, "short": short, "count": count, "span": span,
		"percent": percent, "brief": brief,
		"bar": newBar, "dict": dict, "plural": plural, "seconds": seconds, "visible": visible,
		"progress": progress, "timed": func() bool { return timed }, "asset": asset,
	}
	base := template.Must(template.New("").Funcs(funcs).ParseFS(files, "templates/layout.html", "templates/parts.html"))
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		panic(err) // cannot happen: the pattern is valid
	}
	all := templates{}
	for _, file := range names {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "templates/"), ".html")
		if name != "layout" && name != "parts" {
			all[name] = template.Must(template.Must(base.Clone()).ParseFS(files, file))
		}
	}
	return all
}

// asset returns the address of a file in static, with the hash of its content, so that browsers can keep it.
func asset(name string) string { return "/static/" + name + "?v=" + hashOf("static/"+name) }

func hashOf(path string) string {
	content, err := files.ReadFile(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%.8x", sha256.Sum256(content))
}

// static serves the styles and scripts. An address with another version's hash, as during an upgrade of several nodes,
// gets this version's file, which the browser does not keep.
func static() http.Handler {
	server := http.FileServerFS(files)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hash := hashOf(strings.TrimPrefix(r.URL.Path, "/"))
		w.Header().Set("Etag", strconv.Quote(hash))
		w.Header().Set("Cache-Control", "no-cache")
		if hash != "" && r.URL.Query().Get("v") == hash {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		server.ServeHTTP(w, r)
	})
}

// layout is the data for the layout, which every page has.
type layout struct {
	Title   string
	Menu    []entry
	Here    string // the path of the menu's entry for this page
	Home    string
	URL     string
	Actor   string
	Role    string
	Known   bool // the visitor has a session or is on this machine
	Session bool // the visitor can log out
	Theme   string
	Version string
	Now     lessor.Instant
	Message *message
	Problem *problem
	Page    any
}

// Misread reports whether the page's filter was refused, so that there is no list.
func (l layout) Misread() bool { return l.Problem != nil && l.Problem.Unfiltered != "" }

// Wrote returns the text that a form of this page would not take.
func (l layout) Wrote(path string) string {
	if l.Problem == nil || l.Problem.path != path {
		return ""
	}
	return l.Problem.Wrote()
}

// entry is a link of the menu, which has those that the visitor may open.
type entry struct {
	Name, Path string
	page       string // in pages
}

var menu = []entry{
	{"Overview", "/", "/{$}"},
	{"Jobs", "/jobs", "/jobs"},
	{"Leases", "/leases", "/leases"},
	{"Workers", "/workers", "/workers"},
	{"Schedules", "/schedules", "/schedules"},
	{"Runs", "/runs", "/runs"},
	{"Tenants", "/tenants", "/tenants"},
	{"Recovery", "/recovery", "/recovery"},
	{"Audit", "/audit", "/audit"},
}

func (v *visit) layout(shown view) layout {
	l := layout{
		Title: shown.title, URL: v.address(), Known: v.known(), Session: v.held != nil, Theme: v.theme(),
		Version: v.version, Now: lessor.At(time.Now()), Page: shown.page, Actor: "local", Role: "operator",
		Here: v.section(),
	}
	for _, e := range menu {
		if v.can(pages[e.page].scope) {
			l.Menu = append(l.Menu, e)
		}
	}
	if l.Home = "/"; len(l.Menu) > 0 {
		l.Home = l.Menu[0].Path
	}
	if v.r.Method != http.MethodGet {
		l.URL = v.origin(v.form, "/")
	}
	if v.held != nil {
		l.Role, l.Actor = v.held.Role, v.held.Name
		if l.Actor == "" {
			l.Actor = short(v.held.ID.String())
		}
		if v.held.Tenant != nil {
			l.Role += " of " + short(v.held.Tenant.String())
		}
	}
	return l
}

// section returns the entry of the menu that a page belongs to.
func (v *visit) section() string {
	section, _, _ := strings.Cut(strings.TrimPrefix(v.r.URL.Path, "/"), "/")
	return "/" + section
}

// age says how long ago or ahead an instant is.
func age(i lessor.Instant) string {
	if i.IsZero() {
		return "never"
	}
	d := time.Since(i.Time())
	if d < 0 {
		return "in " + span(-d)
	}
	return span(d) + " ago"
}

const day = 24 * time.Hour

// span shows a duration in its two largest units.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < day:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	case d < 10*day:
		return fmt.Sprintf("%d d %d h", d/day, int(d.Hours())%24)
	}
	return strconv.Itoa(int(d/day)) + " d"
}

// due says how far ahead an instant is, and past if what it is about can happen from now on.
func due(i lessor.Instant, past string) string {
	if time.Now().Before(i.Time()) {
		return age(i)
	}
	return past
}

func instant(i lessor.Instant) string { return i.Time().Format("2006-01-02 15:04:05") + "Z" }

func iso(i lessor.Instant) string { return i.String() }

// short returns the end of an id, because ids that were made at about the same time begin alike.
func short(id string) string {
	if len(id) <= 12 {
		return id
	}
	return "…" + id[len(id)-8:]
}

// count groups digits by thousands.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// plural returns the form of a noun for a number.
func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// seconds shows a setting in the largest unit that divides it.
func seconds(n int64) string {
	for _, unit := range []struct {
		seconds int64
		name    string
	}{{24 * 60 * 60, "d"}, {60 * 60, "h"}, {60, "min"}} {
		if n >= unit.seconds && n%unit.seconds == 0 {
			return strconv.FormatInt(n/unit.seconds, 10) + " " + unit.name
		}
	}
	return strconv.FormatInt(n, 10) + " s"
}

// progress returns the progress of a job: one that is completed is done, whatever its worker reported last.
func progress(j lessor.Job) *float64 {
	if j.State == lessor.Completed {
		return new(1.0)
	}
	return j.Progress
}

func percent(f *float64) string {
	if f == nil {
		return ""
	}
	return strconv.Itoa(int(*f*100+1e-9)) + " %" // 0.29*100 is a little less than 29
}

func newBar(p float64, class, label string) bar { return bar{p, class, label} }

// visible shows stored text. Characters that change the direction of text, or that cannot be seen, are shown as
// escapes, because they could make a name look like another.
func visible(text any) string {
	var b strings.Builder
	for _, r := range fmt.Sprint(reflect.Indirect(reflect.ValueOf(text))) {
		if unicode.Is(unicode.Bidi_Control, r) || unicode.IsControl(r) && r != '\n' && r != '\t' {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// brief returns the beginning of a text that a list shows; the object's own page has all of it.
func brief(text string) string {
	if runes := []rune(text); len(runes) > maxBrief {
		return string(runes[:maxBrief]) + " …"
	}
	return text
}

// dict makes the argument of a template from pairs of names and values.
func dict(pairs ...any) map[string]any {
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		if name, ok := pairs[i].(string); ok {
			m[name] = pairs[i+1]
		}
	}
	return m
}

// address returns the address of the page, without the code of a one-time link.
func (v *visit) address() string {
	if v.r.URL.Path == "/login" && v.r.URL.Query().Has("code") {
		return "/login"
	}
	return v.r.URL.RequestURI()
}
