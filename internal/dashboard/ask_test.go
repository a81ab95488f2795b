package dashboard

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"lessor"
)

// TestDangerousActionsAskFirst: the question names what would be lost, and only a yes acts.
func TestDangerousActionsAskFirst(t *testing.T) {
	w := start(t).world()
	dead := w.command("long", 5*time.Second, "engine")
	draining := func() bool {
		st, err := w.scheduler.Status(t.Context(), tester)
		return err == nil && st.Draining
	}
	runs := func() int {
		list, _, err := w.scheduler.Jobs(t.Context(), tester, lessor.JobFilter{Type: "report.build", Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	before := runs()
	second := w.submit(lessor.Submission{Type: new("video.encode"), TenantID: new(tenantA)})
	held := w.lease("encoder-8", "video.encode")
	b := w.tab(t, w.admin)
	b.open("/recovery")
	b.press("Scan now")
	for _, c := range []struct {
		page, action  string
		asks          []string
		done          func() bool
		outcome, link string
	}{
		{
			"/leases", "/leases/" + held.Lease.ID.String() + "/revoke",
			[]string{
				"Revoke the lease of video.encode?", second.ID.String(), "encoder-8", "runs for",
				"attempt 2 of 5",
			},
			func() bool { return w.state(second.ID) != lessor.Leased }, // it is failed, and soon queued again
			"Revoked the lease of video.encode", "/jobs/" + second.ID.String(),
		},
		{
			"/jobs/" + w.running.ID.String(), "/jobs/" + w.running.ID.String() + "/force-cancel",
			[]string{"Cancel video.encode by force?", "encoder-7", "runs for", "42 %", "its result is dropped"},
			func() bool { return w.state(w.running.ID) == lessor.Cancelled },
			"Cancelled video.encode", "/jobs/" + w.running.ID.String(),
		},
		{
			"/recovery", "/recovery/" + dead.ID.String() + "/mark-dead",
			[]string{"Mark long dead?", dead.ID.String(), "shim", "runs for", "folder is removed", "fails for good"},
			func() bool { return w.state(dead.ID) == lessor.Failed },
			"Marked long", "/jobs/" + dead.ID.String(),
		},
		{
			"/schedules", "/schedules/nightly-invoices/trigger",
			[]string{"Trigger nightly-invoices?", "report.build", "next tick", "A job is created now"},
			func() bool { return runs() == before+1 },
			"Created report.build", "/jobs/",
		},
		{
			"/", "/drain",
			[]string{"Drain the scheduler?", "leases", "Running jobs go on"},
			draining,
			"Draining: no leases are granted.", "/leases",
		},
	} {
		b.open(c.page)
		asked := b.ask(c.action)
		has(t, asked, c.asks...)
		if !b.js(`document.activeElement.matches("dialog [data-close]")`) {
			t.Errorf("%s: the dialog's focus is not on what changes nothing", c.action)
		}
		b.key(kb.Escape)
		b.wait(`!document.querySelector("dialog")`)
		if !b.js(`document.activeElement.matches("form[action='` + c.action + `'] button")`) {
			t.Errorf("%s: the focus does not return to the button", c.action)
		}
		if c.done() {
			t.Fatalf("%s: the question alone acted", c.action)
		}
		b.confirm(c.action)
		if !c.done() {
			t.Errorf("%s: a yes does not act", c.action)
		}
		b.wait(`document.querySelector("#outcome a")`)
		has(t, b.text(`document.querySelector("#outcome").innerText`), c.outcome)
		if got := b.text(`document.querySelector("#outcome a").pathname`); !strings.HasPrefix(got, c.link) {
			t.Errorf("%s: the message links %s, want %s", c.action, got, c.link)
		}
		b.open(c.page)
		if b.js(`!!document.querySelector("#outcome")`) {
			t.Errorf("%s: the message survives a reload", c.action)
		}
	}
	b.open("/")
	b.send("/drain/end")
	if draining() {
		t.Error("the drain does not end")
	}
}

func TestQuestionsArePagesWithoutJavaScript(t *testing.T) {
	w := start(t).world()
	v := w.as(w.admin)
	address := "/leases/" + w.held.Lease.ID.String() + "/revoke"
	ask := address + "?back=/leases%3Fworker_id%3Dx&job=" + w.running.ID.String()
	_, page := v.get(ask)
	has(t, page, "Please confirm</h1>", "Revoke the lease of", "encoder-7", `method="post" action="`+address+`"`,
		`name="back" value="/leases?worker_id=x"`)
	if _, page = v.get("/leases"); !strings.Contains(page, `method="get" action="`+address+`"`) {
		t.Error("the list revokes without a question")
	}
	_, page = v.post(address, "back", "/leases?worker_id=x", "job", w.running.ID.String())
	has(t, page, "Revoked the lease of", "This worker holds no lease")
	if status, _ := v.get(ask); status != http.StatusNotFound {
		t.Errorf("a question about a lease that is gone: %d, want 404", status)
	}
}

func TestMessagesComeFromActionsAlone(t *testing.T) {
	s := start(t)
	v := s.visitor()
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{
		"", "cancelled", "e30", "eyJLaW5kIjoibWluZSIsIk5hbWUiOiJ4IiwiTGluayI6Ii8ifQ", // {}, {"Kind":"mine", …}
		"eyJLaW5kIjoicGF1c2VkIiwiTmFtZSI6IngiLCJMaW5rIjoiLy94LmV4YW1wbGUifQ", // paused, //x.example
	} {
		v.Jar.SetCookies(at, []*http.Cookie{{Name: outcomeCookie, Value: value}})
		if _, page := v.get("/jobs?outcome=cancelled"); strings.Contains(page, `id="outcome"`) {
			t.Errorf("a query and the cookie %q make a message", value)
		}
	}
}

// TestCancelOfAQueuedJobIsUndone: also a job that has a time keeps it.
func TestCancelOfAQueuedJobIsUndone(t *testing.T) {
	s := start(t)
	later := lessor.At(time.Now().Add(time.Hour))
	b := s.tab(t, s.admin)
	for _, job := range []lessor.Job{
		s.submit(lessor.Submission{Type: new("now")}),
		s.submit(lessor.Submission{Type: new("later"), RunAt: new(later.String())}),
	} {
		b.open("/jobs/" + job.ID.String())
		b.press("Cancel")
		if got := s.state(job.ID); got != lessor.Cancelled {
			t.Fatalf("after Cancel the job is %s", got)
		}
		b.wait(`document.activeElement.textContent === "Undo"`)
		b.press("Undo")
		has(t, b.text(`document.querySelector("#outcome").innerText`), "Queued "+job.Type)
		got, err := s.scheduler.Job(t.Context(), tester, job.ID)
		if err != nil || got.State != lessor.Queued || got.RunAt != job.RunAt || got.MaxAttempts != job.MaxAttempts {
			t.Errorf("after Undo: %+v, %v", got, err)
		}
	}
	running := s.submit(lessor.Submission{Type: new("running")})
	s.lease("w", "running")
	b.open("/jobs/" + running.ID.String())
	b.press("Cancel")
	has(t, b.text(`document.querySelector("#outcome").innerText`), "was asked to stop")
	if b.js(`document.querySelector("#outcome").innerText.includes("Undo")`) {
		t.Error("a request to a worker cannot be undone, but is offered to be")
	}
}

// TestFocusStaysWithTheObject: after an action the focus is on the object's next button, or on the message.
func TestFocusStaysWithTheObject(t *testing.T) {
	w := start(t).world()
	b := w.tab(t, w.admin)
	b.open("/schedules")
	b.fromTop()
	b.tabTo(`form[action="/schedules/nightly-invoices/pause"] button`)
	for _, then := range []string{"Resume", "Pause"} {
		b.js(`window.before = true`)
		b.key(kb.Enter)
		b.wait(`!window.before && document.activeElement.textContent === "` + then + `" &&
			document.activeElement.closest("tr").innerText.includes("nightly-invoices")`)
	}
	b.open("/leases")
	b.confirm("/leases/" + w.held.Lease.ID.String() + "/revoke")
	b.wait(`document.activeElement.id === "outcome"`)
}

// TestButtonForNewRowsDoesNotCoverTheMessage: the button that shows new rows stands below the message of an action.
func TestButtonForNewRowsDoesNotCoverTheMessage(t *testing.T) {
	w := start(t).world()
	w.hold("stays")
	b := w.tab(t, w.admin)
	b.open("/leases")
	b.confirm("/leases/" + w.held.Lease.ID.String() + "/revoke")
	w.hold("new")
	b.wait(`!document.querySelector("#new-rows").hidden`)
	if !b.js(`document.querySelector("#new-rows").getBoundingClientRect().top >=
		document.querySelector("#outcome").getBoundingClientRect().bottom`) {
		t.Error("the button for new rows covers the message")
	}
}

// TestErrorsKeepTheForm: a refusal is shown on the page of the form, with what was typed.
func TestErrorsKeepTheForm(t *testing.T) {
	w := start(t).world()
	b := w.tab(t, w.admin)
	b.open("/tenants")
	form := `document.querySelector("form[action='/tenants/` + tenantA + `']")`
	b.js(form + `.weight.value = "much", ` + form + `.cap.value = "7", ` + form + `.paused.checked = true`)
	b.send("/tenants/" + tenantA)
	has(t, b.text(`document.querySelector("#problem").innerText`), "weight must be a whole number")
	if !b.js(form + `.weight.value === "much" && ` + form + `.cap.value === "7" && ` + form + `.paused.checked &&
		document.querySelector("form[action='/tenants/` + tenantB + `']").weight.value === "1" &&
		document.activeElement.id === "problem" && location.pathname === "/tenants"`) {
		t.Error("the form is lost")
	}
	b.open("/jobs?state=running&type=x&tenant_id=acme")
	has(t, b.text(`document.querySelector("#problem").innerText`), "tenant id is a uuid", "Without this filter")
	if !b.js(`(f => f.tenant_id.value === "acme" && f.type.value === "x" && f.state.value === "running")(
		document.querySelector("form.filter")) && !document.body.innerText.includes("No job matches")`) {
		t.Error("the filter is lost")
	}
	v := w.as(w.admin)
	job := "/jobs/" + w.done.ID.String()
	status, page := v.post(job+"/retry", "back", job)
	if status != http.StatusConflict {
		t.Errorf("a retry of a completed job: %d, want 409", status)
	}
	has(t, page, "the job is completed and cannot be retried", "r.pdf")
}

func TestMenuShowsWhatTheRoleMayOpen(t *testing.T) {
	w := start(t, required).world()
	for _, role := range []string{"viewer", "submitter", "worker", "operator", "admin"} {
		v := w.as(w.issue(role, ""))
		_, page := v.get("/login")
		shown := 0
		for _, e := range menu {
			status, _ := v.get(e.Path)
			offered := strings.Contains(page, `<li><a href="`+e.Path+`"`)
			if offered != (status == http.StatusOK) {
				t.Errorf("%s is offered %s: %v, and it is answered %d", role, e.Path, offered, status)
			}
			if offered {
				shown++
			}
		}
		if shown == 0 {
			t.Errorf("%s has no menu", role)
		}
	}
}

func TestStaticFilesAreKeptByVersion(t *testing.T) {
	s := start(t)
	v := s.visitor()
	for _, name := range []string{"style.css", "live.js", "ask.js", "icon.svg"} {
		_, page := v.get("/jobs")
		has(t, page, `"`+asset(name)+`"`)
		for address, want := range map[string]string{
			asset(name):                      "public, max-age=31536000, immutable",
			"/static/" + name + "?v=another": "no-cache",
			"/static/" + name:                "no-cache",
		} {
			r, err := v.Get(s.url + address)
			if err != nil {
				t.Fatal(err)
			}
			r.Body.Close()
			if got := r.Header.Get("Cache-Control"); r.StatusCode != http.StatusOK || got != want {
				t.Errorf("%s: %d %q, want %q", address, r.StatusCode, got, want)
			}
		}
	}
}
