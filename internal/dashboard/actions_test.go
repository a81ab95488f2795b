package dashboard

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"lessor"
)

// state returns a job's state in the scheduler.
func (s *server) state(id lessor.JobID) lessor.State {
	s.t.Helper()
	job, err := s.scheduler.Job(s.t.Context(), tester, id)
	if err != nil {
		s.t.Fatal(err)
	}
	return job.State
}

func TestActionsDoWhatTheySay(t *testing.T) {
	w := start(t).world()
	b := w.tab(t, w.admin)
	b.open("/jobs/" + w.queued.ID.String())
	b.press("Cancel")
	if got := w.state(w.queued.ID); got != lessor.Cancelled {
		t.Errorf("after Cancel the job is %s", got)
	}
	b.press("Retry")
	if got := w.state(w.queued.ID); got != lessor.Queued {
		t.Errorf("after Retry the job is %s", got)
	}
	b.open("/jobs/" + w.running.ID.String())
	b.press("Cancel")
	b.wait(`document.body.innerText.includes("asked of the worker")`)
	b.confirm("/jobs/" + w.running.ID.String() + "/force-cancel")
	if got := w.state(w.running.ID); got != lessor.Cancelled {
		t.Errorf("after Cancel by force the job is %s", got)
	}
	again := w.submit(lessor.Submission{Type: new("video.encode"), MaxAttempts: new(int64(1))})
	held := w.lease("encoder-8", "video.encode")
	b.open("/leases")
	b.confirm("/leases/" + held.Lease.ID.String() + "/revoke")
	if got := w.state(again.ID); got != lessor.Failed {
		t.Errorf("after Revoke the job is %s", got)
	}
}

func TestScheduleActions(t *testing.T) {
	w := start(t).world()
	b := w.tab(t, w.admin)
	b.open("/schedules")
	b.send("/schedules/nightly-invoices/pause")
	b.wait(`document.querySelector("table").innerText.includes("paused")`)
	if def, err := w.scheduler.Definition(t.Context(), tester, "nightly-invoices"); err != nil || !def.Paused {
		t.Errorf("after Pause: %v %v", def.Paused, err)
	}
	b.send("/schedules/nightly-invoices/resume")
	b.wait(`!document.querySelector("table").innerText.includes("paused")`)
	before, _, _ := w.scheduler.Jobs(t.Context(), tester, lessor.JobFilter{Type: "report.build", Limit: 100})
	b.confirm("/schedules/nightly-invoices/trigger")
	after, _, _ := w.scheduler.Jobs(t.Context(), tester, lessor.JobFilter{Type: "report.build", Limit: 100})
	if len(after) != len(before)+1 {
		t.Errorf("Trigger made %d jobs", len(after)-len(before))
	}
	b.open("/tenants")
	b.js(`(() => { const f = document.querySelector("form[action='/tenants/` + tenantA + `']");
		f.weight.value = "7"; f.paused.checked = true; return true })()`)
	b.send("/tenants/" + tenantA)
	got, err := w.scheduler.Tenant(t.Context(), tester, tenant(tenantA))
	if err != nil || got.Weight != 7 || !got.Paused || *got.MaxConcurrency != 20 {
		t.Errorf("after Save: %+v %v", got, err)
	}
	b.send("/tenants/" + tenantB)
	if got, err = w.scheduler.Tenant(t.Context(), tester, tenant(tenantB)); err != nil || !got.MaxConcurrencyDefault {
		t.Errorf("after Save of a tenant without a cap of its own: %+v %v", got, err)
	}
	b.open("/recovery")
	b.press("Scan now")
	b.wait(`document.body.innerText.includes("Scanned the workspace of node-1.")`)
}

func TestOpenCircuitIsClosedByHand(t *testing.T) {
	s := start(t)
	s.breakCircuit("fragile")
	v := s.visitor()
	_, page := v.get("/schedules")
	has(t, page, `s-open`, "Close circuit")
	_, page = v.post("/schedules/fragile/reset")
	has(t, page, "Closed the circuit of", `s-closed`)
}

func TestBulkCountsFirstAndTouchesOnlyWhatMatches(t *testing.T) {
	w := start(t).world()
	other := w.submit(lessor.Submission{Type: new("other")})
	b := w.tab(t, w.admin)
	b.open("/jobs?type=thumbnail.make")
	b.press("Cancel…")
	b.wait(`document.body.innerText.includes("3 jobs match")`)
	if got := w.state(w.queued.ID); got != lessor.Queued {
		t.Fatalf("the question alone made the job %s", got)
	}
	b.press("Cancel 3 jobs")
	b.wait(`document.querySelector("h1").innerText.includes("completed")`) // by the live update
	if got := b.text(`document.querySelector(".details").innerText`); !strings.Contains(got, "3 of 3") {
		t.Errorf("progress: %s", got)
	}
	if got := w.state(w.queued.ID); got != lessor.Cancelled {
		t.Errorf("after the bulk cancel the job is %s", got)
	}
	if got := w.state(other.ID); got != lessor.Queued {
		t.Errorf("a job that did not match is %s", got)
	}
	v := w.as(w.admin)
	v.post("/jobs/bulk", "action", "retry", "count", "3", "type", "thumbnail.make")
	deadline := time.Now().Add(60 * time.Second)
	for ; w.state(w.queued.ID) != lessor.Queued; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the bulk retry queued nothing")
		}
	}
	status, _ := v.post("/jobs/bulk", "action", "retry", "count", "10001")
	if status != http.StatusUnprocessableEntity {
		t.Errorf("an operation without bound is answered %d", status)
	}
}

func TestPageFollowsTheScheduler(t *testing.T) {
	s := start(t)
	b := s.tab(t, s.admin)
	b.open("/jobs")
	b.wait(`document.querySelector("#live").innerText === "live" && document.body.innerText.includes("No jobs yet")`)
	b.js(`window.before = true`)
	job := s.submit(lessor.Submission{Type: new("came.later")})
	b.wait(`window.before && document.body.innerText.includes("came.later")`)
	b.open("/jobs/" + job.ID.String())
	s.lease("w-1", "came.later")
	b.wait(`document.querySelector(".countdown .left")`)
	first := b.text(`document.querySelector(".countdown .left").innerText`)
	b.wait(`document.querySelector(".countdown .left").innerText !== "` + first + `"`)
}

func TestOpenedFieldsStayOpen(t *testing.T) {
	w := start(t).world()
	b := w.tab(t, w.admin)
	b.open("/audit")
	b.js(`document.querySelector("details").open = true`)
	opened := b.text(`document.querySelector("details").closest("tr").dataset.key`)
	w.define("another", "report.build", 3600)
	b.wait(`document.querySelector("#new-rows").innerText === "1 new: show"`)
	b.js(`document.querySelector("#new-rows").click(), true`)
	b.wait(`document.body.innerText.includes("another")`)
	if still := b.text(`document.querySelector("details[open]")?.closest("tr").dataset.key ?? ""`); still != opened {
		t.Errorf("somebody opened the details of %q, and those of %q are open", opened, still)
	}
}

func TestDownloadsAreFiles(t *testing.T) {
	s := start(t)
	job := s.submit(lessor.Submission{Type: new("x"), Payload: []byte(`{"a":"<script>alert(1)</script>"}`)})
	r, err := s.visitor().Get(s.url + "/jobs/" + job.ID.String() + "/download/payload")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, _ := io.ReadAll(r.Body)
	if string(body) != `{"a":"<script>alert(1)</script>"}` {
		t.Errorf("not as it was sent: %s", body)
	}
	h := r.Header
	if !strings.HasPrefix(h.Get("Content-Disposition"), "attachment;") ||
		h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("a browser might show it: %v", h)
	}
}
