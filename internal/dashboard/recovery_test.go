package dashboard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lessor"
	"lessor/internal/sentinel"
)

// command leases a new job and writes a sentinel of this age for it.
func (s *server) command(typ string, age time.Duration, engine string) lessor.Job {
	s.t.Helper()
	job := s.submit(lessor.Submission{Type: &typ, MaxAttempts: new(int64(1))})
	_, denial, err := s.scheduler.Request(s.t.Context(), tester,
		lessor.LeaseRequest{WorkerID: new("shim"), Types: []string{typ}, WorkspaceID: new(s.workspace.ID())})
	if err != nil || denial != nil {
		s.t.Fatalf("request: %v %v", denial, err)
	}
	f, err := s.workspace.MakeFolder(job.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if err := f.WriteSentinel(sentinel.Sentinel{
		JobID: job.ID, Status: sentinel.Running, LastHeartbeat: lessor.At(time.Now().Add(-age)),
		AgentEngine: engine, Seq: 1,
	}); err != nil {
		s.t.Fatal(err)
	}
	return job
}

func TestRecoveryShowsVerdictsAndActs(t *testing.T) {
	s := start(t)
	live := s.command("long", 5*time.Second, hostile[0])
	s.command("longer", 5*time.Minute, hostile[1])
	odd := filepath.Join(s.workspace.Path(), "jobs", `"><svg onload=window.owned=1>`)
	if err := os.MkdirAll(filepath.Join(odd, ".sentinel.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	b := s.tab(t, s.admin)
	b.open("/recovery")
	b.press("Scan now")
	b.wait(`document.querySelectorAll("table tbody tr").length === 3`)
	page := b.text(`document.querySelector("main").innerText`)
	has(t, page, "fresh", "stale", "invalid", hostile[0], hostile[1], "<svg onload")
	if b.js(`!!window.owned || !!document.querySelector("main script, main img, main [onload]")`) {
		t.Error("a sentinel's text runs")
	}
	b.open("/leases")
	has(t, b.text(`document.querySelector("table").innerText`), "fresh", "stale")
	b.open("/recovery")
	b.confirm("/recovery/" + live.ID.String() + "/mark-dead")
	if got := s.state(live.ID); got != lessor.Failed {
		t.Errorf("after Mark dead the job is %s", got)
	}
	b.press("Resume")
	b.wait(`document.body.innerText.includes("which continues where the other job ended.")`)
	jobs, _, err := s.scheduler.Jobs(t.Context(), tester,
		lessor.JobFilter{Type: "long", State: lessor.Queued, Limit: 10})
	if err != nil || len(jobs) != 1 {
		t.Errorf("Resume queued %d jobs: %v", len(jobs), err)
	}
	if strings.Contains(b.text(`document.querySelector("main").innerHTML`), "<script") {
		t.Error("a script is on the page")
	}
}
