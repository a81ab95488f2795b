package dashboard

import (
	"net/http"
	"strings"
	"testing"

	"lessor"
)

// TestLeaseThatEndedIsSaidInPlace presses Revoke for leases that end before the question, and before the yes.
func TestLeaseThatEndedIsSaidInPlace(t *testing.T) {
	s := start(t)
	b := s.tab(t, s.admin)
	for _, asked := range []bool{false, true} {
		job := s.submit(lessor.Submission{Type: new("short")})
		g := s.lease("w-1", "short")
		action := "/leases/" + g.Lease.ID.String() + "/revoke"
		b.open("/leases")
		b.js(`window.before = true`)
		if asked {
			b.ask(action)
		}
		s.finish(g, "completed", "1")
		method := map[bool]string{true: "post", false: "get"}[asked]
		b.js(`document.querySelector("form[action='` + action + `'][method=` + method + `]").requestSubmit(), true`)
		b.wait(`document.activeElement.id === "problem"`)
		has(t, b.text(`document.querySelector("#problem").innerText`),
			"The lease ended at 20", ": completed, by test/w-1; nothing was done", "short …")
		if !b.js(`location.pathname === "/leases" && document.querySelector("h1").innerText === "Leases" &&
			!document.querySelector("dialog") &&
			document.querySelector("#problem a").pathname === "/jobs/` + job.ID.String() + `"`) {
			t.Errorf("asked %v: not on the page of the leases, or no link to the job", asked)
		}
		if !asked && !b.js(`window.before`) {
			t.Error("the page was left for the question that was refused")
		}
	}
}

// TestActionsOnWhatIsOverAnswerInPlace acts, without JavaScript, on objects that changed after the page was shown.
func TestActionsOnWhatIsOverAnswerInPlace(t *testing.T) {
	w := start(t).world()
	v := w.as(w.admin)
	job := func(j lessor.Job) string { return "/jobs/" + j.ID.String() }
	waits := w.submit(lessor.Submission{Type: new("deploy")})
	w.asks(w.lease("w1", "deploy"), "Deploy?", "yes", "no")
	question := w.job(waits.ID).Question.ID.String()
	if _, err := w.scheduler.Cancel(t.Context(), tester, waits.ID, false); err != nil {
		t.Fatal(err)
	}
	none := "/jobs/018f0000-0000-7000-8000-0000000000ff"
	for _, c := range []struct {
		method, path string
		form         []string // besides back
		back         string
		status       int
		says         []string
	}{
		{
			"POST", job(w.done) + "/cancel", nil, job(w.done), 409,
			[]string{"the job is completed and cannot be cancelled", "r.pdf"},
		},
		{
			"GET", job(w.done) + "/force-cancel", nil, job(w.done), 409,
			[]string{"no worker has the job: it is completed since 20", "r.pdf"},
		},
		{
			"POST", job(w.done) + "/force-cancel", nil, "/jobs", 409,
			[]string{"cannot be cancelled", `href="` + job(w.done) + `"`},
		},
		{
			"POST", job(w.queued) + "/retry", nil, job(w.queued), 409,
			[]string{"the job is queued and cannot be retried"},
		},
		{
			"POST", job(w.done) + "/message",
			[]string{"text", "hurry <b>up</b>"},
			job(w.done), 409,
			[]string{"the job is completed", "This was not sent", "hurry &lt;b&gt;up&lt;/b&gt;</pre>"},
		},
		{
			"POST", job(waits) + "/answer",
			[]string{"question", question, "answer", "yes"},
			job(waits), 409,
			[]string{"does not wait for an answer any more", "This was not sent", "yes</pre>"},
		},
		{
			"POST", "/recovery/" + w.done.ID.String() + "/mark-dead", nil, "/recovery", 409,
			[]string{"not running", `href="` + job(w.done) + `"`},
		},
		{
			"GET", "/schedules/none/trigger", nil, "/schedules", 404,
			[]string{"this definition was deleted", "nightly-invoices"},
		},
		{
			"POST", "/schedules/none/trigger", nil, "/schedules/none", 404,
			[]string{"this definition was deleted", "<h1>Schedules</h1>"},
		},
		{
			"POST", "/schedules/none/pause", nil, "/schedules", 404,
			[]string{"this definition was deleted", "nightly-invoices"},
		},
		{"POST", none + "/cancel", nil, none, 404, []string{"this job is no longer kept", "<h1>Jobs</h1>"}},
		{
			"POST", "/alerts/018f0000-0000-7000-8000-0000000000ff/acknowledge", nil, "/", 404,
			[]string{"this alert is no longer kept", "<h1>Overview</h1>"},
		},
		{
			"POST", "/jobs/bulk",
			[]string{"action", "retry", "count", "10001"},
			"/jobs?type=x", 422,
			[]string{`value="x"`, "<h1>Jobs</h1>"},
		},
	} {
		var status int
		var page string
		if c.method == http.MethodPost {
			status, page = v.post(c.path, append(c.form, "back", c.back)...)
		} else {
			status, page = v.get(c.path + "?back=" + escape(c.back))
		}
		if status != c.status {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, status, c.status)
		}
		if has(t, page, append(c.says, `id="problem" data-page="`)...); strings.Contains(page, "request a lease") {
			t.Errorf("%s %s advises a worker", c.method, c.path)
		}
	}
}

// TestTypedTextOutlivesTheForm types a message to a job that ends before it is sent.
func TestTypedTextOutlivesTheForm(t *testing.T) {
	s := start(t)
	job := s.submit(lessor.Submission{Type: new("short")})
	g := s.lease("w-1", "short")
	b := s.tab(t, s.admin)
	b.open("/jobs/" + job.ID.String())
	b.js(`document.querySelector("input[name=text]").value = "use the other mirror"; true`)
	s.finish(g, "completed", "1")
	b.wait(`document.querySelector("h1").innerText.includes("completed")`)
	b.send("/jobs/" + job.ID.String() + "/message")
	has(t, b.text(`document.querySelector("#problem").innerText`), "The job is completed", "use the other mirror")
}

// TestRefusedFieldsStayThroughLiveUpdates: an update of the page leaves the fields of a refused form as typed.
func TestRefusedFieldsStayThroughLiveUpdates(t *testing.T) {
	w := start(t).world()
	b := w.tab(t, w.admin)
	b.open("/tenants")
	form := `document.querySelector("form[action='/tenants/` + tenantA + `']")`
	b.js(form + `.weight.value = "much", ` + form + `.paused.checked = true`)
	b.send("/tenants/" + tenantA)
	w.submit(lessor.Submission{Type: new("another"), TenantID: new("018f0000-0000-7000-8000-00000000000c")})
	b.wait(`document.querySelector("#live").innerText === "live" &&
		document.querySelector("#new-rows").checkVisibility() ||
		document.querySelectorAll("tbody tr").length === 3`)
	if !b.js(form + `.weight.value === "much" && ` + form + `.paused.checked`) {
		t.Error("an update of the page took back what was typed")
	}
}

// TestLoginAfterARefusedFormLeadsToItsPage: a visitor who is no longer logged in keeps the text, and returns to the
// page.
func TestLoginAfterARefusedFormLeadsToItsPage(t *testing.T) {
	s := start(t, required)
	job := "/jobs/" + s.submit(lessor.Submission{Type: new("short")}).ID.String()
	status, page := s.visitor().post(job+"/message", "text", "a long story", "back", job)
	if status != http.StatusUnauthorized {
		t.Errorf("%d, want 401", status)
	}
	has(t, page, "This was not sent", "a long story</pre>",
		`href="/login?next=`+strings.ReplaceAll(job, "/", "%2f")+`"`)
}
