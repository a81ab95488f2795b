package dashboard

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"lessor"
)

// cutOff finds what does not fit: a page that is too wide or too tall, times on two lines, what stands out of its card,
// and tables and boxes that hide a part of their content.
const cutOff = `(() => {
  const bad = [], page = document.documentElement;
  // Hidden for the eye, not for screen readers.
  const isHidden = (el) => !!el && (getComputedStyle(el).clipPath !== "none" || isHidden(el.parentElement));
  if (page.scrollWidth > page.clientWidth)
    bad.push("the page is " + (page.scrollWidth - page.clientWidth) + " px too wide");
  for (const el of document.querySelectorAll("body *")) {
    if (!el.checkVisibility() || el.closest(".skip, svg, select") || isHidden(el)) continue;
    const hides = getComputedStyle(el).overflowX !== "visible";
    if (hides && !el.matches("input") && el.scrollWidth > el.clientWidth + 1)
      bad.push((el.scrollWidth - el.clientWidth) + " px are hidden in " + el.outerHTML.slice(0, 100));
    if (el.matches("td time, .age, .instant") && el.getBoundingClientRect().height > 30)
      bad.push("a time on two lines: " + el.innerText);
    const top = el.getBoundingClientRect().top;
    if (el.matches(".table + *") && top < el.previousElementSibling.getBoundingClientRect().bottom)
      bad.push("below a table: " + el.innerText);
    if (el.matches("td") && !el.innerText.trim() && !el.firstElementChild && innerWidth <= 1100)
      bad.push("a label without a value: " + el.outerHTML);
    const card = el.closest(".card, .empty, .login, dialog, pre");
    if (card && el.getBoundingClientRect().right > card.getBoundingClientRect().right + 1)
      bad.push("out of its card: " + el.outerHTML.slice(0, 100));
    if (el.getBoundingClientRect().right > innerWidth + 1)
      bad.push("beyond the right edge: " + el.outerHTML.slice(0, 100));
  }
  if (page.scrollHeight > 12000) bad.push("the page is " + page.scrollHeight + " px tall");
  return bad.slice(0, 5);
})()`

// TestNothingIsCutOff opens every page, full and empty, at the width of a phone, a tablet both ways, a laptop and a
// wide screen. LESSOR_SCREENSHOTS names a folder for pictures in both themes.
func TestNothingIsCutOff(t *testing.T) {
	w := start(t).world()
	w.hour()
	w.tab(t, w.admin).openAtWidths("full", append(w.paths(), w.fillLists()...))
	empty := start(t)
	empty.tab(t, empty.admin).openAtWidths("empty", slices.Sorted(maps.Keys(nothingYet)))
	empty.stop()
	empty.sample = func() (lessor.BusyInputs, error) {
		return lessor.BusyInputs{CPUPercent: 100, Requests: 1_000_000, SampledAt: lessor.At(time.Now())}, nil
	}
	empty.boot("127.0.0.1:0")
	sampled := empty.tab(t, empty.admin)
	sampled.open("/")
	sampled.wait(`document.body.textContent.includes("API p95")`)
	sampled.openAtWidths("sampled", []string{"/"})
}

// fillLists fills the lists of a world, with names as long as they may be, and returns the pages of two of them.
func (w world) fillLists() []string {
	w.t.Helper()
	long := strings.Repeat("transcode.4k.", 9)
	var job lessor.Job
	for i := range pageSize {
		job = w.submit(lessor.Submission{
			Type: new(fmt.Sprint(long, i)), TenantID: new(tenantB), Tags: []string{"customer-" + long[:40], "nightly"},
			LockKey: new(fmt.Sprint(long, i)), IdempotencyKey: new(fmt.Sprint(long, i)), MaxAttempts: new(int64(1)),
		})
		worker := fmt.Sprintf("encoder-%d.%s.eu-central-1.compute.example.org", i, long)
		g := w.lease(worker, fmt.Sprint(long, i))
		if i%2 == 0 {
			w.finish(g, "failed", "ffmpeg: "+strings.Repeat("cannot-open-the-input-", 180))
		}
	}
	w.define("nightly."+long[:100], long, 3600)
	return []string{"/jobs/" + job.ID.String(), "/schedules/nightly." + long[:100]}
}

// widths are those of a phone, a tablet both ways, a laptop, a screen and a wide one, in pixels.
var widths = []int64{390, 768, 1024, 1280, 1440, 1920}

// measure checks that the page that is open fits a width.
func (b *tab) measure(path, name string, width int64) {
	b.t.Helper()
	do(b, chromedp.EmulateViewport(width, 900))
	for _, problem := range do(b, chromedp.Evaluate[[]string](cutOff)) {
		b.t.Errorf("%.100s, %s at %d px: %s", path, name, width, problem)
	}
}

// openAtWidths opens pages at every width.
func (b *tab) openAtWidths(name string, paths []string) {
	b.t.Helper()
	dir := os.Getenv("LESSOR_SCREENSHOTS")
	if dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.t.Fatal(err)
		}
	}
	for i, path := range paths {
		b.open(path)
		for _, width := range widths {
			b.measure(path, name, width)
			height := do(b, chromedp.Evaluate[int](`document.querySelector(".top").offsetHeight`))
			if height > 90 && name != "longest" { // a row has 24 to 48 px; a name may need a third
				b.t.Errorf("%s at %d px: the header is %d px high, more than two rows", path, width, height)
			}
			if dir == "" {
				continue
			}
			page := strings.Trim(strings.NewReplacer("/", "-", "?", "-", "=", "-", "&", "-").Replace(path), "-")
			for _, theme := range []string{"light", "dark"} {
				b.picture(dir, fmt.Sprintf("%s-%02d-%.20s-%d-%s.png", name, i, page, width, theme), width, theme)
			}
		}
	}
}

// TestMenuOpensAndClosesOnAPhone opens the menu by its button, follows a link of it, and closes it by the keyboard.
func TestMenuOpensAndClosesOnAPhone(t *testing.T) {
	w := start(t).world()
	b := w.tab(t, w.admin)
	do(b, chromedp.EmulateViewport(390, 900))
	b.open("/leases")
	const links = `[...document.querySelectorAll("nav a")].filter((a) => a.checkVisibility())`
	const push = `document.querySelector(".menu").click(), true`
	if !b.js(links + `.length === 0`) {
		t.Error("the menu is open before its button was pressed")
	}
	b.js(push)
	b.wait(links + `.length === document.querySelectorAll("nav a").length`)
	if dir := os.Getenv("LESSOR_SCREENSHOTS"); dir != "" {
		b.picture(dir, "menu-390.png", 390, "light")
	}
	b.measure("/leases", "with its menu", 390)
	b.key(kb.Escape)
	b.wait(links + `.length === 0`)
	b.js(push)
	b.js(`document.querySelector("nav a[href='/audit']").click(), true`)
	b.wait(`location.pathname === "/audit"`)
	do(b, chromedp.EmulateViewport(1280, 900))
	if !b.js(links + `.length > 5 && !document.querySelector(".menu").checkVisibility()`) {
		t.Error("a wide window hides the menu behind a button")
	}
}

// TestPicturesOfTheDocs makes the pictures of docs/observability.md, when LESSOR_DOCS_PICTURES is set.
func TestPicturesOfTheDocs(t *testing.T) {
	if os.Getenv("LESSOR_DOCS_PICTURES") == "" {
		t.Skip("LESSOR_DOCS_PICTURES is not set")
	}
	w := start(t).world()
	w.hour()
	b := w.tab(t, w.admin)
	for _, p := range []struct {
		path, name, theme string
		width             int64
	}{
		{"/", "overview.png", "light", 1280},
		{"/", "overview-dark.png", "dark", 1280},
		{"/jobs/" + w.running.ID.String(), "job.png", "light", 1280},
	} {
		b.open(p.path)
		b.picture("../../docs/screenshots", p.name, p.width, p.theme)
	}
}

// hour makes up an hour of work for the charts.
func (w world) hour() {
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	for i := range slots {
		s := w.history.at(time.Now().Add(-time.Duration(i) * slotTime))
		wave := math.Sin(float64(i) / 9)
		s.submitted, s.completed, s.otherwise = 60+int(40*wave), 58+int(30*math.Sin(float64(i-4)/9)), 3+i%4
		s.depth, s.sampled = 30+int(25*wave), true
	}
}
