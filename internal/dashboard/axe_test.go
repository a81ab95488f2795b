package dashboard

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// audit finds what people who do not see, or see badly, or use no mouse would stumble over. It returns one line a problem.
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
    if (!(el.labels && el.labels.length && el.labels[0].textContent.trim()) && !el.getAttribute("aria-label")) bad.push("no label: " + at(el));
  for (const el of document.querySelectorAll("button, a[href]"))
    if (!el.textContent.trim() && !el.getAttribute("aria-label")) bad.push("no name: " + at(el));
  for (const el of document.querySelectorAll("svg"))
    if (el.getAttribute("aria-hidden") !== "true" && !el.getAttribute("aria-label")) bad.push("picture without a name: " + at(el));
  for (const el of document.querySelectorAll("th")) if (!el.getAttribute("scope")) bad.push("th without scope: " + at(el));
  for (const el of document.querySelectorAll("[tabindex]")) if (Number(el.getAttribute("tabindex")) > 0) bad.push("focus order by number: " + at(el));
  for (const el of document.querySelectorAll(".table, pre, td code"))
    if ((el.scrollWidth > el.clientWidth + 1 || el.scrollHeight > el.clientHeight + 1) && getComputedStyle(el).overflow !== "visible" && el.tabIndex < 0) bad.push("scrolls by mouse only: " + at(el));
  let level = 0;
  for (const h of document.querySelectorAll("h1, h2, h3")) {
    const n = Number(h.tagName[1]);
    if (n > level + 1) bad.push("heading skips a level: " + at(h));
    level = n;
  }
  const rgb = (c) => { const x = document.createElement("canvas").getContext("2d"); x.fillStyle = c; x.fillRect(0, 0, 1, 1); return [...x.getImageData(0, 0, 1, 1).data]; };
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
  const seen = new Set();
  for (const el of document.querySelectorAll("body *")) {
    if (!visible(el) || ![...el.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || el.closest("option, .hidden, .skip")) continue;
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

// walk presses Tab's way through a page: the elements that take the focus, in the order of the document, must be in the order of the eye.
const walk = `(() => {
  const bad = [];
  const main = document.querySelector("main");
  const stops = [...main.querySelectorAll("a[href], button, input:not([type=hidden]), select")].filter((e) => e.getClientRects().length && !e.closest(".table"));
  for (let i = 1; i < stops.length; i++) {
    const [a, b] = [stops[i - 1].getBoundingClientRect(), stops[i].getBoundingClientRect()];
    if (b.bottom < a.top && b.left < a.right) bad.push("focus goes back up: " + stops[i].outerHTML.slice(0, 100));
  }
  for (const el of stops.slice(0, 5)) {
    el.focus();
    if (document.activeElement !== el) bad.push("takes no focus: " + el.outerHTML.slice(0, 100));
  }
  const skip = document.querySelector(".skip");
  skip.focus();
  if (skip.getBoundingClientRect().left < 0) bad.push("the way past the menu is not to be seen");
  return bad;
})()`

func TestPagesAreForEverybody(t *testing.T) {
	w := start(t).world()
	b := w.tab(t, w.admin)
	for _, path := range w.paths() {
		b.open(path)
		for _, theme := range []string{"light", "dark"} {
			b.js(`document.documentElement.dataset.theme = "` + theme + `"; true`)
			for _, problem := range do(b, chromedp.Evaluate[[]string](audit)) {
				t.Errorf("%s, %s: %s", path, theme, problem)
			}
		}
		for _, problem := range do(b, chromedp.Evaluate[[]string](walk)) {
			t.Errorf("%s: %s", path, problem)
		}
	}
}

func TestThemeIsChosenWithoutJavaScript(t *testing.T) {
	s := start(t)
	v := s.visitor()
	if _, page := v.get("/"); !strings.Contains(page, `<html lang="en">`) {
		t.Error("a theme was chosen by nobody")
	}
	if _, page := v.post("/theme", "theme", "dark", "back", "/jobs"); !strings.Contains(page, `data-theme="dark"`) || !strings.Contains(page, "<h1>Jobs</h1>") {
		t.Error("the choice of a theme is lost")
	}
}
