package dashboard

import (
	"strings"
	"testing"
	"time"
)

// TestChartsSayWhatTheyKnow: after a start the sums are of the time since then, and the time before is hatched.
func TestChartsSayWhatTheyKnow(t *testing.T) {
	w := start(t).world()
	begun := time.Now().UTC().Truncate(slotTime)
	b := w.tab(t, w.admin)
	b.open("/")
	caption := b.text(`document.querySelector(".chart figcaption").innerText`)
	if since := "since " + begun.Format("15:04"); !strings.Contains(caption, since) &&
		!strings.Contains(caption, "since "+begun.Add(slotTime).Format("15:04")) || strings.Contains(caption, "hour") {
		t.Errorf("the sums are those of %q, want %q", caption, since)
	}
	if !strings.Contains(caption, "no figures") || !b.js(`[...document.querySelectorAll(".chart svg")].every((svg) => {
		const gap = svg.querySelector("rect"), pattern = gap.getAttribute("fill").slice(5, -1);
		return svg.querySelector("#" + pattern) && gap.width.baseVal.value > 580 })`) {
		t.Errorf("the hour before the start is not hatched: %s", b.text(`document.querySelector(".chart").outerHTML`))
	}
	w.hour()
	b.open("/")
	caption = b.text(`document.querySelector(".chart figcaption").innerText`)
	if !strings.Contains(caption, "in the last hour") || b.js(`!!document.querySelector(".chart rect")`) {
		t.Errorf("after an hour the chart says %q, and has a gap: %v", caption, b.js(`!!document.querySelector(".chart rect")`))
	}
}

func TestChartsHaveGaps(t *testing.T) {
	known := []bool{false, true, true, false, false, true, false}
	c := draw("x", []line{{}}, [][]int{{0, 1, 2, 0, 0, 2, 0}}, known)
	if got, want := c.Lines[0].Path, "M100.0 62.0L200.0 6.0M500.0 6.0"; got != want {
		t.Errorf("the line is %s, want %s", got, want)
	}
	if want := []gap{{0, 100}, {200, 300}, {500, 100}}; len(c.Gaps) != 3 || [3]gap(c.Gaps) != [3]gap(want) {
		t.Errorf("the gaps are %v, want %v", c.Gaps, want)
	}
}
