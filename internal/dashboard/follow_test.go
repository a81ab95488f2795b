package dashboard

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"lessor"
)

// hold takes a new lease of a job of this type.
func (s *server) hold(typ string) lessor.Grant {
	s.t.Helper()
	s.submit(lessor.Submission{Type: &typ})
	return s.lease("w-1", typ)
}

// pass waits until a time has passed in the browser, in milliseconds.
func (b *tab) pass(ms int) {
	b.t.Helper()
	b.js(fmt.Sprintf(`window.until = performance.now() + %d, true`, ms))
	b.wait(`performance.now() > window.until`)
}

// TestPageSurvivesARestart: while the server is down the page says so, counts no lease down and offers no action; then
// it goes on by itself, in the same session.
func TestPageSurvivesARestart(t *testing.T) {
	s := start(t, required)
	s.hold("long.job")
	b := s.tab(t, s.admin)
	do(b, chromedp.EmulateViewport(390, 900))
	b.open("/leases")
	b.wait(`document.querySelector("#live").innerText === "live"`)
	b.js(`window.before = true`)
	s.stop()
	b.wait(`/^offline since \d\d:\d\d:\d\d, figures frozen$/.test(document.querySelector("#live").innerText)`)
	const figures = `document.querySelector("tbody").innerText`
	first := b.text(figures)
	b.pass(2500)
	if later := b.text(figures); later != first || strings.Contains(first, " 0 s left") {
		t.Errorf("the figures of a page that is offline changed from\n%s\nto\n%s", first, later)
	}
	if !b.js(`document.querySelector("td button").disabled`) {
		t.Error("a page that is offline offers to revoke a lease")
	}
	for _, problem := range do(b, chromedp.Evaluate[[]string](cutOff)) {
		t.Errorf("offline on a phone: %s", problem)
	}
	s.boot(strings.TrimPrefix(s.url, "http://"), required)
	b.wait(`document.querySelector("#live").innerText === "live" && !document.querySelector("td button").disabled`)
	b.wait(figures + ` !== ` + fmt.Sprintf("%q", first))
	if !b.js(`window.before && location.pathname === "/leases"`) {
		t.Error("the page was loaded again")
	}
}

func TestPageWithoutASessionShowsTheLogin(t *testing.T) {
	s := start(t, required)
	secret := s.issue("viewer", "")
	b := s.tab(t, secret)
	b.open("/jobs?state=queued")
	held, _ := s.tokens.Find(secret, lessor.At(time.Now()))
	s.tokens.Remove(held.ID)
	b.wait(`location.pathname === "/login" && location.search === "?next=%2Fjobs%3Fstate%3Dqueued"`)
}

// TestManyTabsAreLive opens more pages than a browser has connections to a server; all of them follow.
func TestManyTabsAreLive(t *testing.T) {
	s := start(t)
	first := s.tab(t, s.admin)
	tabs := []*tab{first}
	for range 9 {
		ctx, cancel := chromedp.NewContext(first.ctx)
		ctx, stop := context.WithTimeout(ctx, 60*time.Second)
		t.Cleanup(func() { stop(); cancel() })
		tabs = append(tabs, &tab{t, ctx, s.url})
	}
	for _, b := range tabs {
		b.open("/jobs")
	}
	s.submit(lessor.Submission{Type: new("came.later")})
	for _, b := range tabs {
		b.wait(`!document.hidden && document.body.innerText.includes("came.later")`)
	}
}

// asks counts the requests of the page from now on in window.asked.
func (b *tab) asks() {
	b.t.Helper()
	b.js(`(() => { const ask = fetch; window.asked = 0;
		window.fetch = (...a) => ask(...a).finally(() => window.asked++); return true })()`)
}

func TestHiddenPageAsksForNothing(t *testing.T) {
	s := start(t)
	b := s.tab(t, s.admin)
	b.open("/jobs")
	b.asks()
	see := func(hidden bool) {
		b.js(fmt.Sprintf(`Object.defineProperty(document, "hidden", { value: %v, configurable: true }),
			document.dispatchEvent(new Event("visibilitychange")), true`, hidden))
	}
	b.wait(`window.asked > 0`)
	see(true)
	b.pass(1500) // an answer may have been on its way
	asked := b.text(`String(window.asked)`)
	b.pass(2500)
	if now := b.text(`String(window.asked)`); now != asked {
		t.Errorf("a hidden page asked the server: %s, then %s requests", asked, now)
	}
	see(false)
	b.wait(`window.asked > ` + asked)
}

// TestRowsStayUnderThePointer: while leases come and go, a resting pointer is on the button of one lease; rows that are
// over are marked, and new ones are shown on request.
func TestRowsStayUnderThePointer(t *testing.T) {
	s := start(t)
	var held []lessor.Grant
	for i := range 6 {
		held = append(held, s.hold(fmt.Sprintf("old.%d", i)))
	}
	b := s.tab(t, s.admin)
	do(b, chromedp.EmulateViewport(1280, 900))
	b.open("/leases")
	mine := held[2].Lease.ID.String()
	row := fmt.Sprintf("tr[data-key='%s']", mine)
	box := do(b, chromedp.Evaluate[[]float64](`(() => {
		const r = document.querySelector("`+row+` button").getBoundingClientRect();
		return [r.x + r.width / 2, r.y + r.height / 2] })()`))
	do(b, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, box[0], box[1]))
	under := fmt.Sprintf(`document.elementFromPoint(%f, %f).closest("tr").dataset.key`, box[0], box[1])
	s.finish(held[5], "completed", "{}")
	s.finish(held[0], "completed", "{}")
	for i := range 12 {
		s.hold(fmt.Sprintf("new.%d", i))
	}
	b.wait(`document.querySelector("#new-rows").innerText === "12 new: show"`)
	b.wait(`document.querySelectorAll("tr.gone").length === 2 &&
		document.querySelectorAll("tr.gone button:disabled").length === 2`)
	if got := b.text(under); got != mine {
		t.Errorf("the pointer rests on the button of lease %s, and was put on that of %s", got, mine)
	}
	s.finish(held[2], "completed", "{}")
	b.wait(`document.querySelector("` + row + `.gone button:disabled")`)
	if got := b.text(under); got != mine {
		t.Errorf("a lease that is over made room for %s under the pointer", got)
	}
	b.js(`document.querySelector("#new-rows").click(), true`)
	b.wait(`document.querySelector("#new-rows").hidden && document.querySelectorAll("tbody tr").length === 15 &&
		!document.querySelector(".gone") && document.querySelector("tbody tr").innerText.includes("new.11")`)
	if !b.js(`!!document.activeElement.closest("[aria-label=Leases]")`) {
		t.Error("after the new rows are shown, the focus is nowhere")
	}
}

// TestLastRowStaysUntilItIsHidden: the only lease ends and another one begins. Its button is not put under the pointer
// that rested on the button of the first.
func TestLastRowStaysUntilItIsHidden(t *testing.T) {
	s := start(t)
	first := s.hold("first")
	b := s.tab(t, s.admin)
	b.open("/leases")
	s.finish(first, "completed", "{}")
	b.wait(`document.querySelector("tr.gone button:disabled") &&
		document.querySelector("#new-rows").innerText === "1 gone: hide"`)
	second := s.hold("second")
	b.wait(`document.querySelector("#new-rows").innerText === "1 new: show"`)
	if !b.js(`document.querySelectorAll("tr.gone").length === 1 && !document.querySelector("tbody tr:not(.gone)")`) {
		t.Errorf("a new row took the place of the last one:\n%s", b.text(`document.querySelector("main").innerText`))
	}
	b.js(`document.querySelector("#new-rows").click(), true`)
	b.wait(`document.querySelector("tbody").innerText.includes("second") && !document.querySelector(".gone")`)

	s.finish(second, "completed", "{}")
	b.wait(`document.querySelector("#new-rows").innerText === "1 gone: hide"`)
	if b.js(`document.querySelector(".empty")?.checkVisibility() ?? false`) {
		t.Error("the page says that nothing runs beside the row that is over")
	}
	b.js(`document.querySelector("#new-rows").click(), true`)
	b.wait(`document.querySelector(".empty")?.checkVisibility() && !document.querySelector(".table")`)
}

// TestUseOfAPageIsNotDisturbed: a list changes in place around what somebody focused, selected, typed or opened.
func TestUseOfAPageIsNotDisturbed(t *testing.T) {
	s := start(t)
	g, other := s.hold("focused.job"), s.hold("other.job")
	b := s.tab(t, s.admin)
	b.open("/leases")
	row := fmt.Sprintf("tr[data-key='%s']", g.Lease.ID)
	b.js(`document.querySelector("` + row + ` button").focus(),
		getSelection().selectAllChildren(document.querySelector("` + row + ` [data-label=Type]")), true`)
	time.Sleep(2 * time.Millisecond) // instants are milliseconds: a beat is to be later than its grant
	s.beat(g, 0.5, "half")
	s.beat(other, 0.5, "half")
	b.wait(`document.querySelectorAll("tbody .s-running").length === 2`)
	s.hold("new.job")
	b.wait(`document.querySelector("#new-rows").innerText === "1 new: show"`)
	b.js(`document.querySelector("#new-rows").click(), true`)
	if !b.js(`String(getSelection()).trim() === "focused.job"`) {
		t.Errorf("the selection is %q", b.text(`String(getSelection())`))
	}
	b.js(`getSelection().removeAllRanges(), document.querySelector("` + row + ` button").focus(), true`)
	s.finish(other, "completed", "{}")
	b.wait(`document.querySelector("tr.gone")`)
	if !b.js(`document.activeElement === document.querySelector("` + row + ` button")`) {
		t.Error("the focus did not stay with its lease")
	}

	b.open("/tenants")
	b.js(`document.querySelector("input[name=weight]").focus(), true`)
	b.key("77")
	typed := b.text(`document.querySelector("input[name=weight]").value`)
	was := b.text(`document.querySelector("tbody tr").innerText`)
	s.hold("one.more")
	b.wait(fmt.Sprintf(`document.querySelector("tbody tr").innerText !== %q`, was))
	if now := b.text(`document.querySelector("input[name=weight]").value`); now != typed ||
		!b.js(`document.activeElement.name === "weight"`) {
		t.Errorf("%q was typed, and is %q after the list changed", typed, now)
	}
}
