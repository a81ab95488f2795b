package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lessor"
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
		t.Errorf("after an hour the chart says %q, and has a gap: %v", caption,
			b.js(`!!document.querySelector(".chart rect")`))
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

// TestGreenTicksAreThoseThatSucceeded: a tick that fired shows the outcome of its job, and the newest is first.
func TestGreenTicksAreThoseThatSucceeded(t *testing.T) {
	s := start(t)
	id := "quick"
	_, _, err := s.scheduler.PutDefinition(t.Context(), tester, id, lessor.Envelope{
		JobID: &id, TenantID: new(tenantA), HandlerID: new("quick.run"), LockKey: &id, MaxAttempts: new(int64(1)),
		Overlap: new("allow"), Schedule: &lessor.ScheduleAsk{
			Type:    new(lessor.ScheduleInterval),
			Seconds: new(int64(1)),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"completed", "failed"} {
		g, _, err := s.scheduler.Request(t.Context(), tester, lessor.LeaseRequest{
			WorkerID: new("w"), Types: []string{"quick.run"}, WaitMS: new(int64(10_000)),
		})
		if err != nil || len(g) != 1 {
			t.Fatalf("no tick fired: %v %v", g, err)
		}
		s.finish(g[0], end, "{}")
	}
	b := s.tab(t, s.admin)
	b.open("/schedules/" + id)
	colour := func(class string) string {
		return b.text(`(() => { const s = getComputedStyle(document.querySelector(".t-` + class + `"));
			return s.borderTopWidth === "0px" ? s.backgroundColor : s.borderTopColor })()`)
	}
	b.wait(`document.querySelector(".t-completed + .t-failed")`)
	green := b.text(`getComputedStyle(document.querySelector("h1 .s-active")).color`)
	if good, bad := colour("completed"), colour("failed"); good != green || bad == green {
		t.Errorf("ticks that succeeded are %s, those that failed %s; green is %s", good, bad, green)
	}
	b.wait(`[...document.querySelectorAll("[data-label=Tick] [data-at]")].map((el) => Number(el.dataset.at)).
		every((at, i, all) => i === 0 || all[i - 1] > at)`)
	if b.text(`getComputedStyle(document.querySelector("td .s-fired")).color`) == green {
		t.Error("fired looks like succeeded")
	}
}

// TestOpenAlertsStayTrueAsTimePasses: what an open alert says stays true while time passes.
func TestOpenAlertsStayTrueAsTimePasses(t *testing.T) {
	s := start(t)
	s.breakCircuit("broken")
	b := s.tab(t, s.admin)
	b.open("/")
	has(t, b.text(`document.querySelector(".alerts").innerText`),
		"5 attempts of broken failed in a row; its circuit is open, and lets one job through after 300 s")
}

// defineFragile adds a definition whose circuit opens with the first failure; its interval and cooldown are in seconds.
func (s *server) defineFragile(every, cooldown int64) {
	s.t.Helper()
	id := "fragile"
	_, _, err := s.scheduler.PutDefinition(s.t.Context(), tester, id, lessor.Envelope{
		JobID: &id, TenantID: new(tenantA), HandlerID: new("fragile.run"), LockKey: &id,
		Schedule: &lessor.ScheduleAsk{Type: new(lessor.ScheduleInterval), Seconds: &every},
		Circuit:  &lessor.CircuitAsk{Failures: new(int64(1)), CooldownSeconds: &cooldown},
	})
	if err != nil {
		s.t.Fatalf("define: %v", err)
	}
}

// TestTrialIsNotSaidToBePast: an open circuit whose time is over waits for a job, and nothing was tried yet.
func TestTrialIsNotSaidToBePast(t *testing.T) {
	s := start(t)
	s.defineFragile(3600, 2)
	if _, err := s.scheduler.Trigger(t.Context(), tester, "fragile", nil); err != nil {
		t.Fatal(err)
	}
	b := s.tab(t, s.admin)
	b.open("/schedules/fragile")
	s.finish(s.lease("w", "fragile.run"), "failed", "broken")
	b.js(`window.seen = new Set(), setInterval(() => { for (const dt of document.querySelectorAll("dt"))
		if (dt.innerText === "trial") seen.add(dt.nextElementSibling.innerText) }, 20), true`)
	b.wait(`seen.has("the next job")`)
	if got := b.text(`[...seen].join("; ")`); strings.Contains(got, "ago") {
		t.Errorf("the trial of an open circuit was said to be: %s", got)
	}
	if _, page := s.visitor().get("/schedules/fragile"); !strings.Contains(page, ">the next job</span>") {
		t.Error("without JavaScript the page does not say that the next job is the trial")
	}
}

func TestCompletedJobIsAtHundredPercent(t *testing.T) {
	w := start(t).world() // its worker reported 90 % last
	b := w.tab(t, w.admin)
	for _, path := range []string{"/jobs/" + w.done.ID.String(), "/jobs?type=report.build&state=completed"} {
		b.open(path)
		page := b.text(`document.body.innerText`)
		has(t, page, "100 %")
		if strings.Contains(page, "90 %") {
			t.Errorf("%s: a completed job is at 90 %%", path)
		}
	}
	if got := percent(new(0.29)); got != "29 %" {
		t.Errorf("0.29 is %s", got)
	}
}

// TestLastBeatIsAHeartbeat: the grant of a lease is not shown as a heartbeat.
func TestLastBeatIsAHeartbeat(t *testing.T) {
	s := start(t)
	g := s.hold("silent")
	b := s.tab(t, s.admin)
	b.open("/leases")
	if got := b.text(`document.querySelector("[data-label='Last beat']").innerText`); got != "–" {
		t.Errorf("a lease without a heartbeat shows one: %q", got)
	}
	b.open("/jobs/" + g.Job.ID.String())
	const beat = `[...document.querySelectorAll("dt")].find((dt) => dt.innerText === "last beat").nextElementSibling`
	if got := b.text(beat + `.innerText`); got != "–" {
		t.Errorf("the page of a job without a heartbeat shows one: %q", got)
	}
	time.Sleep(2 * time.Millisecond) // instants are milliseconds: a beat is to be later than its grant
	s.beat(g, 0.5, "half")
	b.wait(beat + `.innerText.includes("ago")`)
}

// TestAlertsLeadToWhatTheyAreAbout follows the link of an alert of each kind. A sentinel's job may be unknown.
func TestAlertsLeadToWhatTheyAreAbout(t *testing.T) {
	w := start(t).world()
	type link struct{ kind, subject, to string }
	known, unknown := w.running.ID.String(), "01a1e899-0000-7000-8000-000000000abc"
	links := []link{
		{"job_failed", "a type/+", "/jobs?state=failed&type=a+type%2F%2B"},
		{"stale", known, "/jobs/" + known},
		{"circuit_open", "nightly-invoices", "/schedules/nightly-invoices"},
		{"mass_expiry", "leases", "/leases"},
		{"dead", unknown, ""},
		{"store_went_back", "store", ""},
	}
	for _, l := range links {
		alert := lessor.Alert{Kind: lessor.AlertKind(l.kind), Subject: l.subject, Message: "about " + l.subject}
		if err := w.scheduler.Raise(t.Context(), alert); err != nil {
			t.Fatal(err)
		}
	}
	b := w.tab(t, w.admin)
	for _, l := range links {
		b.open("/")
		to := fmt.Sprintf(`([...document.querySelectorAll(".alerts li")].find((li) =>
			li.innerText.includes(%q)).querySelector("a")?.getAttribute("href") ?? "")`, "about "+l.subject)
		if got := b.text(to); got != l.to {
			t.Errorf("an alert %s leads to %q, want %q", l.kind, got, l.to)
		} else if got != "" {
			b.open(got)
			b.wait(`document.querySelector("h1") && !document.title.startsWith("Not found")`)
		}
	}
}

// TestBulkExplainsWhatItLeftOut: the page explains a job that was counted and then no longer matched the filter.
func TestBulkExplainsWhatItLeftOut(t *testing.T) {
	w := start(t).world()
	b := w.tab(t, w.admin)
	b.open("/jobs/bulk?action=cancel&type=thumbnail.make&state=queued")
	has(t, b.text(`document.body.innerText`), "3 jobs match")
	if _, err := w.scheduler.Cancel(t.Context(), tester, w.queued.ID, false); err != nil {
		t.Fatal(err)
	}
	b.send("/jobs/bulk'][method='post")
	b.wait(`document.querySelector(".s-completed")`)
	has(t, b.text(`document.body.innerText`), "2 of 3",
		"1 job of the 3 that were counted did not match the filter any more.")
}
