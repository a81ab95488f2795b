package dashboard

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"lessor"
)

// stop is the place of the focus: its number among all places that take it, and what is wrong there.
type stop struct {
	Index, Of int
	Label     string
	Problems  []string
}

// stops finds the places that take the focus, in the order of the document, and checks the one that has it.
const stops = `(() => {
  const places = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
  const all = [...document.querySelectorAll(places)].filter((e) => e.checkVisibility() && !e.disabled);
  const el = document.activeElement, index = all.indexOf(el), bad = [];
  if (index < 0) return { Index: -1, Of: all.length, Label: el.tagName, Problems: bad };
  const style = getComputedStyle(el), box = el.getBoundingClientRect();
  if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) bad.push("no ring around it");
  if (all.some((e) => e !== el && getComputedStyle(e).outlineStyle !== "none")) bad.push("others have a ring, too");
  if (box.bottom <= 0 || box.top >= innerHeight || box.right <= 0 || box.left >= innerWidth) bad.push("out of sight");
  const hit = document.elementFromPoint(Math.min(innerWidth, Math.max(0, box.left + box.width / 2)),
    Math.min(innerHeight - 1, Math.max(0, box.top + box.height / 2)));
  if (!hit || !(el.contains(hit) || hit.contains(el))) bad.push("covered by " + (hit && hit.outerHTML.slice(0, 60)));
  if (index > 0) {
    const before = all[index - 1].getBoundingClientRect();
    if (!all[index - 1].matches(".skip") && box.bottom <= before.top && box.left < before.right)
      bad.push("above the one before it");
  }
  return { Index: index, Of: all.length, Label: el.outerHTML.slice(0, 80), Problems: bad };
})()`

// key presses a key as a person does.
func (b *tab) key(keys string, mods ...chromedp.KeyOption) {
	b.t.Helper()
	do(b, chromedp.KeyEvent(keys, mods...))
}

// fromTop makes the next Tab begin at the top of the page, also if an element takes the focus. The browser sets that
// focus at the first frame, which may be later than the load event.
func (b *tab) fromTop() {
	b.t.Helper()
	b.wait(`document.activeElement.matches("[autofocus]") || !document.querySelector("[autofocus]")`)
	b.js(`document.body.tabIndex = -1, document.body.focus(), document.body.removeAttribute("tabindex"),
		scrollTo(0, 0), true`)
}

// walk presses Tab from the top of a page to its end.
func (b *tab) walk(where string) {
	b.t.Helper()
	b.fromTop()
	for want := 0; ; want++ {
		b.key(kb.Tab)
		at := do(b, chromedp.Evaluate[stop](stops))
		if want == at.Of && at.Index <= 0 {
			return // out at the end, or at the top again
		}
		if at.Index != want {
			b.t.Errorf("%s: Tab number %d leads to place %d of %d, %s", where, want, at.Index, at.Of, at.Label)
			return
		}
		for _, problem := range at.Problems {
			b.t.Errorf("%s: %s: %s", where, problem, at.Label)
		}
	}
}

func TestTabWalksDownEveryPage(t *testing.T) {
	w := start(t).world()
	b := w.tab(t, w.admin)
	for width, paths := range map[int64][]string{1280: w.paths(), 390: {"/", "/jobs", "/tenants"}} {
		do(b, chromedp.EmulateViewport(width, 900))
		for _, path := range paths {
			b.open(path)
			b.walk(fmt.Sprintf("%s at %d px", path, width))
		}
	}
}

func TestSkipLinkLeadsPastTheMenu(t *testing.T) {
	w := start(t).world()
	b := w.tab(t, w.admin)
	for _, path := range w.paths() {
		b.open(path)
		b.fromTop()
		b.key(kb.Tab)
		if !b.js(`document.activeElement.matches(".skip") &&
			document.activeElement.getBoundingClientRect().left >= 0`) {
			t.Errorf("%s: the first Tab does not show the way past the menu", path)
		}
		b.key(kb.Enter)
		b.wait(`location.hash === "#main"`)
		b.key(kb.Tab)
		if !b.js(`!!document.activeElement.closest("main, footer")`) {
			t.Errorf("%s: after the skip link Tab leads to %s", path,
				b.text(`document.activeElement.outerHTML.slice(0, 80)`))
		}
		b.key(kb.Tab, chromedp.KeyModifiers(kb.ModifierShift))
		b.key(kb.Tab, chromedp.KeyModifiers(kb.ModifierShift))
		if b.js(`!!document.activeElement.closest("footer")`) {
			t.Errorf("%s: Shift+Tab does not lead back", path)
		}
	}
}

// tabTo presses Tab until the focus is on what a selector matches.
func (b *tab) tabTo(selector string) {
	b.t.Helper()
	for range 200 {
		b.key(kb.Tab)
		if b.js(`document.activeElement.matches(` + "`" + selector + "`" + `)`) {
			return
		}
	}
	b.t.Fatalf("Tab never leads to %s", selector)
}

func TestKeyboardAloneIsEnough(t *testing.T) {
	w := start(t).world()
	b := w.tab(t, w.admin)
	b.open("/")
	b.fromTop()
	b.tabTo(`nav a[href="/jobs"]`)
	b.key(kb.Enter)
	b.wait(`location.pathname === "/jobs"`)
	b.tabTo(`input[name="type"]`)
	b.key("thumbnail.make")
	b.key(kb.Enter)
	b.wait(`location.search.includes("type=thumbnail.make") && document.querySelectorAll("tbody tr").length === 3`)
	b.tabTo(`a[href="/jobs/` + w.queued.ID.String() + `"]`)
	b.key(kb.Enter)
	b.wait(`location.pathname === "/jobs/` + w.queued.ID.String() + `"`)
	b.tabTo(`form[action$="/cancel"] button`)
	b.key(kb.Enter)
	b.wait(`document.querySelector("#outcome")`)
	if got := w.state(w.queued.ID); got != lessor.Cancelled {
		t.Errorf("after Enter on Cancel the job is %s", got)
	}
	b.open("/audit")
	b.fromTop()
	b.tabTo(`summary`)
	b.key(kb.Enter)
	b.wait(`document.querySelector("details").open`)
}
