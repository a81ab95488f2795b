package dashboard

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// audit finds problems for people who do not see well or use no mouse. It returns one line per problem.
const audit = `(() => {
  const bad = [];
  const at = (el) => el.outerHTML.slice(0, 120);
  const visible = (el) => el.getClientRects().length > 0 && getComputedStyle(el).visibility !== "hidden";
  if (!document.documentElement.lang) bad.push("no language");
  if (document.querySelectorAll("h1").length !== 1) bad.push("not one h1");
  if (document.querySelectorAll("main").length !== 1) bad.push("not one main");
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  if (new Set(ids).size !== ids.length) bad.push("an id is there twice");
  for (const el of document.querySelectorAll("input:not([type=hidden]), select, textarea"))
    if (!(el.labels && el.labels.length && el.labels[0].textContent.trim()) && !el.getAttribute("aria-label"))
      bad.push("no label: " + at(el));
  for (const el of document.querySelectorAll("button, a[href]"))
    if (!el.textContent.trim() && !el.getAttribute("aria-label")) bad.push("no name: " + at(el));
  const named = {};
  for (const el of document.querySelectorAll("button, a[href], input:not([type=hidden])")) {
    const to = el.href || el.form?.action + el.name + el.value, name = el.getAttribute("aria-label") ||
      el.labels && el.labels.length && el.labels[0].textContent.trim() || el.textContent.trim();
    if ((named[name] ||= to) !== to) bad.push("two have the name " + name + ": " + at(el));
  }
  for (const el of document.querySelectorAll("svg"))
    if (el.getAttribute("aria-hidden") !== "true" && !el.getAttribute("aria-label"))
      bad.push("picture without a name: " + at(el));
  for (const el of document.querySelectorAll("th"))
    if (!el.getAttribute("scope")) bad.push("th without scope: " + at(el));
  for (const el of document.querySelectorAll("[tabindex]"))
    if (Number(el.getAttribute("tabindex")) > 0) bad.push("focus order by number: " + at(el));
  for (const el of document.querySelectorAll(".table, pre, td code"))
    if ((el.scrollWidth > el.clientWidth + 1 || el.scrollHeight > el.clientHeight + 1) &&
        getComputedStyle(el).overflow !== "visible" && el.tabIndex < 0) bad.push("scrolls by mouse only: " + at(el));
  let level = 0;
  for (const h of document.querySelectorAll("h1, h2, h3")) {
    const n = Number(h.tagName[1]);
    if (n > level + 1) bad.push("heading skips a level: " + at(h));
    level = n;
  }
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true }), known = {};
  const rgb = (c) => known[c] ||= (canvas.clearRect(0, 0, 1, 1), canvas.fillStyle = c, canvas.fillRect(0, 0, 1, 1),
    [...canvas.getImageData(0, 0, 1, 1).data]);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
  const seen = new Set();
  for (const el of document.querySelectorAll("body *")) {
    if (!visible(el) || ![...el.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) ||
        el.closest("option, .hidden, .skip")) continue;
    let back = el, c;
    while ((c = rgb(getComputedStyle(back).backgroundColor))[3] < 255 && back.parentElement) back = back.parentElement;
    const fore = rgb(getComputedStyle(el).color);
    const key = fore + "/" + c;
    if (seen.has(key)) continue;
    seen.add(key);
    const [a, b] = [light(fore), light(c)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) bad.push("contrast " + ratio.toFixed(2) + ": " + at(el));
  }
  return bad;
})()`

// wantAccessible audits the page that is open, in both themes.
func (b *tab) wantAccessible(path string) {
	b.t.Helper()
	for _, theme := range []string{"light", "dark"} {
		b.js(`document.documentElement.dataset.theme = "` + theme + `"; true`)
		for _, problem := range do(b, chromedp.Evaluate[[]string](audit)) {
			b.t.Errorf("%s, %s: %s", path, theme, problem)
		}
	}
}

func TestPagesAreAccessible(t *testing.T) {
	w := start(t).world()
	b := w.tab(t, w.admin)
	complaints := b.listen()
	for _, path := range w.paths() {
		b.open(path)
		b.wantAccessible(path)
		for _, problem := range complaints() {
			t.Errorf("%s: %s", path, problem)
		}
	}
}

// TestEmptyPagesAreAccessible audits every page of a new server; each must say what to do next.
func TestEmptyPagesAreAccessible(t *testing.T) {
	s := start(t)
	b := s.tab(t, s.admin)
	complaints := b.listen()
	for path, wants := range nothingYet {
		b.open(path)
		b.wantAccessible(path)
		seen := b.text(`[...document.querySelectorAll(".empty")]
			.filter((e) => e.checkVisibility() && e.getBoundingClientRect().height > 20)
			.map((e) => e.innerText).join("\n")`)
		for _, want := range wants {
			if !strings.Contains(seen, want) {
				t.Errorf("%s does not tell a newcomer %q, but: %s", path, want, seen)
			}
		}
		for _, problem := range complaints() {
			t.Errorf("%s: %s", path, problem)
		}
	}
	b.open("/nothing")
	b.wantAccessible("/nothing")
}

// nothingYet has every page that can be empty, and the text that it then shows.
var nothingYet = map[string][]string{
	"/":                        {"No jobs yet", "lessor submit hello", "lessor work --type hello"},
	"/jobs":                    {"No jobs yet", "lessor submit hello"},
	"/jobs?type=none":          {"No job matches", "Show all jobs"},
	"/jobs/bulk?action=cancel": {"No job matches", "Back to the list"},
	"/leases":                  {"Nothing runs now", "lessor work --type hello"},
	"/leases?worker_id=none":   {"holds no lease", "Show all leases"},
	"/workers":                 {"No worker requested work", "lessor work --type hello"},
	"/schedules":               {"Nothing is scheduled", "lessor schedules apply -f"},
	"/runs":                    {"No run yet", "lessor submit hello"},
	"/runs?status=FAILED":      {"No run matches", "Show all runs"},
	"/tenants":                 {"No tenant yet", "lessor submit hello --tenant"},
	"/recovery":                {"No command runs", "lessor work --type hello"},
	"/audit?actor=none":        {"No change of a definition", "Show all entries"},
	"/login":                   nil,
}

// TestThemeFollowsTheSystem checks the colours that the browser prefers, without a choice by the visitor.
func TestThemeFollowsTheSystem(t *testing.T) {
	w := start(t).world()
	b := w.tab(t, w.admin)
	paper := func() string { return b.text(`getComputedStyle(document.body).backgroundColor`) }
	papers := map[string]string{}
	for _, theme := range []string{"light", "dark"} {
		b.prefer(theme)
		for _, path := range w.paths() {
			b.open(path)
			for _, problem := range do(b, chromedp.Evaluate[[]string](audit)) {
				t.Errorf("%s, %s by the system: %s", path, theme, problem)
			}
		}
		papers[theme] = paper()
		if !b.js(`getComputedStyle(document.documentElement).colorScheme === "` + theme + `"`) {
			t.Errorf("the browser's own parts are not %s", theme)
		}
	}
	if papers["light"] == papers["dark"] {
		t.Fatalf("both themes are %s", papers["dark"])
	}
	b.press("Light") // in the dark, it leads to the light
	if got := paper(); got != papers["light"] {
		t.Errorf("a choice does not outweigh the system: %s", got)
	}
	b.press("Auto")
	if got := paper(); got != papers["dark"] {
		t.Errorf("without a choice the page does not follow the system: %s", got)
	}
}

func TestThemeIsChosenWithoutJavaScript(t *testing.T) {
	s := start(t)
	v := s.visitor()
	if _, page := v.get("/"); !strings.Contains(page, `<html lang="en">`) {
		t.Error("a theme was chosen by nobody")
	}
	_, page := v.post("/theme", "theme", "dark", "back", "/jobs")
	if !strings.Contains(page, `data-theme="dark"`) || !strings.Contains(page, "<h1>Jobs</h1>") {
		t.Error("the choice of a theme is lost")
	}
}

// TestForcedColoursLoseNothing: with the system's few colours, what only a background showed can still be seen.
func TestForcedColoursLoseNothing(t *testing.T) {
	s := start(t)
	s.define("quick", "quick.run", 1)
	w := s.world()
	b := w.tab(t, w.admin)
	b.open("/schedules")
	b.wait(`document.querySelector(".tick")`) // by the live update
	b.prefer("dark", "forced-colors", "active")
	for path, shapes := range map[string][]string{
		"/schedules": {".tick", ".state"}, "/": {".key", ".gauge .fill", ".gauge .rail", ".state"},
		"/leases": {".bar .fill"},
	} {
		b.open(path)
		for _, shape := range shapes {
			if !b.js(`(() => {
				const canvas = getComputedStyle(document.body).backgroundColor;
				const el = document.querySelector("` + shape + `");
				const style = getComputedStyle(el, el.matches(".key") ? "::before" : null);
				return el instanceof SVGElement ? style.fill !== canvas :
					style.backgroundColor !== canvas || parseFloat(style.borderTopWidth) > 0;
			})()`) {
				t.Errorf("%s: %s cannot be seen", path, shape)
			}
		}
	}
	b.open("/")
	for _, pair := range [][2]string{
		{".key.k-submitted", ".key.k-completed"},
		{".key.k-completed", ".key.k-failed"},
		{".key.k-submitted", ".key.k-failed"},
		{".key.k-usable", ".key.k-rail"},
		{".key.k-fill", ".key.k-usable"},
	} {
		if b.js(fmt.Sprintf(`(() => {
			const look = (el) => {
				const style = getComputedStyle(document.querySelector(el), "::before");
				return [style.backgroundColor, style.borderTopStyle].join();
			};
			return look(%q) === look(%q);
		})()`, pair[0], pair[1])) {
			t.Errorf("%s and %s look the same", pair[0], pair[1])
		}
	}
}
