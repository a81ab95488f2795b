package dashboard

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lessor"
)

func TestColoursOfOutput(t *testing.T) {
	for text, want := range map[string][]coloured{
		"plain":                            {{"", "plain"}},
		"\x1b[31mred\x1b[0m plain":         {{"c1", "red"}, {"", " plain"}},
		"\x1b[1;92mgood\x1b[22m still":     {{"bold c2", "good"}, {"c2", " still"}},
		"a\r\n\x1b[34mb\x1b[39mc\x1b[m":    {{"", "a\n"}, {"c4", "b"}, {"", "c"}},
		"\x1b[38;5;196mdeep":               {{"", "deep"}},
		"\x1b[2Jcleared":                   {{"", "\x1b["}, {"", "2Jcleared"}},
		"\x1b[31mopen":                     {{"c1", "open"}},
		"cut \x1b[3":                       {{"", "cut \x1b["}, {"", "3"}},
		"\x1b[31\" onload=\"x\x1b[32mtext": {{"", "\x1b["}, {"", "31\" onload=\"x"}, {"c2", "text"}},
	} {
		if diff := cmp.Diff(want, colour(text, false)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	if got := colour("\x1b[31mred\x1b[0m", true); len(got) != 1 || got[0] != (coloured{"", "red"}) {
		t.Errorf("without colours: %v", got)
	}
}

// TestOutputIsShownLive prints while the page is open, hostile text and more than a page holds.
func TestOutputIsShownLive(t *testing.T) {
	w := start(t).world()
	job := w.submit(lessor.Submission{Type: new("printing")}).ID
	g := w.lease("printer", "printing")
	first := "begin \x1b[31mred\x1b[0m <script>window.owned=1</script>\n"
	w.print(g, 0, first)
	b := w.tab(t, w.admin)
	b.open("/jobs/" + job.String())
	b.wait(`document.querySelector(".output .c1")?.innerText === "red"`)
	if !strings.Contains(b.text(`document.querySelector(".output").innerText`), "<script>window.owned=1</script>") {
		t.Error("output is not shown as it was printed")
	}
	w.print(g, int64(len(first)), "more\n")
	b.wait(`document.querySelector(".output").innerText.includes("more")`)
	long := strings.Repeat("line of output\n", 4000)
	w.print(g, int64(len(first)+5), long+"last\n")
	b.wait(`document.querySelector(".output").innerText.includes("last") && !document.querySelector(".c1")`)
	if b.js(`!!window.owned`) {
		t.Error("output ran in the browser")
	}
	const end = `document.querySelector(".output").scrollHeight - document.querySelector(".output").clientHeight`
	b.wait(`document.querySelector(".output").scrollTop > ` + end + ` - 4`)
	b.js(`document.querySelector(".output").scrollTop = 50, true`)
	w.print(g, int64(len(first)+5+len(long)+5), "and one more\n")
	b.wait(`document.querySelector(".output").innerText.includes("and one more")`)
	if !b.js(`document.querySelector(".output").scrollTop === 50`) {
		t.Error("new output moved what somebody had scrolled to")
	}
	b.open("/jobs/" + job.String() + "?colours=off")
	b.wait(`document.querySelector(".output").scrollTop > ` + end + ` - 4`)
	b.wait(`!document.querySelector(".output .c1")`)
}

// TestOutputBeforeAReleaseIsShown opens the page when the attempt goes on and has printed nothing yet, and when it has.
func TestOutputBeforeAReleaseIsShown(t *testing.T) {
	w := start(t).world()
	job := w.submit(lessor.Submission{Type: new("printing")}).ID
	g := w.lease("printer", "printing")
	w.print(g, 0, "before the deploy\n")
	err := w.scheduler.Release(t.Context(), tester, g.Lease.ID, lessor.Release{WorkerID: &g.Lease.WorkerID})
	if err != nil {
		t.Fatal(err)
	}
	g = w.lease("printer", "printing")
	v := w.as(w.admin)
	if _, page := v.get("/jobs/" + job.String()); !strings.Contains(page, "before the deploy") {
		t.Error("the page does not show what was printed before the deploy")
	}
	w.print(g, 0, "after it\n")
	_, page := v.get("/jobs/" + job.String())
	if !strings.Contains(page, "after it") || !strings.Contains(page, "<code>lessor jobs logs "+job.String()) {
		t.Error("the page does not show what is printed now, or does not say how to see all")
	}
}

// TestOutputOfEachLeaseIsLinked follows the links from a page to what earlier leases of the job printed.
func TestOutputOfEachLeaseIsLinked(t *testing.T) {
	w := start(t).world()
	job := w.submit(lessor.Submission{Type: new("printing")}).ID
	texts := []string{"the first", "the second", "the third"}
	for i, text := range texts {
		g := w.lease("printer", "printing")
		w.print(g, 0, text+" lease\n")
		if i == len(texts)-1 {
			break
		}
		err := w.scheduler.Release(t.Context(), tester, g.Lease.ID, lessor.Release{WorkerID: &g.Lease.WorkerID})
		if err != nil {
			t.Fatal(err)
		}
	}
	b := w.tab(t, w.admin)
	b.open("/jobs/" + job.String())
	b.wait(`document.querySelector(".output")?.innerText.includes("the third lease")`)
	for i, text := range texts {
		b.js(fmt.Sprintf(`document.querySelectorAll('[aria-label="Output of leases"] a')[%d].click() ?? true`, i))
		b.wait(fmt.Sprintf(`document.querySelector(".output")?.innerText.trim() === "%s lease"`, text))
	}
	v := w.as(w.admin)
	if status, _ := v.get("/jobs/" + job.String() + "?fence=99"); status != http.StatusNotFound {
		t.Errorf("a lease that the job never had is answered with %d, want 404", status)
	}
}
