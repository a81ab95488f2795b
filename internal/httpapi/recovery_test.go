package httpapi

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lessor"
	"lessor/internal/sentinel"
)

// administer sends a request to the administration's part of the API, and wants this status.
func (s *server) administer(method, path, body string, want int) map[string]any {
	s.t.Helper()
	w := s.call(method, administration+path, body, with(s.admin))
	if w.Code != want {
		s.t.Fatalf("%s %s: %d %s; want %d", method, path, w.Code, w.Body, want)
	}
	return decoded(s.t, w)
}

// command leases a new job from the server's workspace, and writes a sentinel of this age.
func (s *server) command(age time.Duration, engine string) (id, lease string) {
	s.t.Helper()
	s.api("POST", "/jobs", `{"type":"long","max_attempts":1}`, 201)
	g := s.api("POST", "/leases/request", `{"worker_id":"w","types":["long"],"workspace_id":"`+s.workspace.ID()+`"}`,
		200)
	id, lease = g["job"].(map[string]any)["job_id"].(string), g["lease"].(map[string]any)["lease_id"].(string)
	u, err := lessor.ParseUUID(id)
	if err != nil {
		s.t.Fatal(err)
	}
	f, err := s.workspace.MakeFolder(lessor.JobID{UUID: u})
	if err != nil {
		s.t.Fatal(err)
	}
	err = f.WriteSentinel(sentinel.Sentinel{
		JobID: lessor.JobID{UUID: u}, Status: sentinel.Running, LastHeartbeat: lessor.At(time.Now().Add(-age)),
		AgentEngine: engine, SessionID: "abc123def456", Seq: 1,
	})
	if err = errors.Join(err, os.WriteFile(f.Join("abc123def456.jsonl"), nil, 0o600), f.Close()); err != nil {
		s.t.Fatal(err)
	}
	return id, lease
}

// The answers have the shapes of the specification, and more fields only where the contract adds them.
func TestRecoveryAnswersHaveTheShapesOfTheSpecification(t *testing.T) {
	s := start(t)
	fresh, _ := s.command(15*time.Second, "claude-code")
	stale, _ := s.command(345*time.Second, "gemini")
	s.administer("POST", "/recovery/scan", "", 200)
	beats := s.administer("GET", "/recovery/jobs/heartbeats", "", 200)
	status := map[any]any{}
	for _, j := range beats["jobs"].([]any) {
		j := j.(map[string]any)
		wantFields(t, j, "jobId", "lastHeartbeat", "ageSeconds", "status", "agentEngine")
		status[j["jobId"]] = j["status"]
	}
	if diff := cmp.Diff(map[any]any{fresh: "fresh", stale: "stale"}, status); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	wantFields(t, beats, "jobs", "summary", "node")
	wantFields(t, beats["summary"].(map[string]any), "total", "fresh", "stale", "dead", "invalid")
	list := s.administer("GET", "/recovery/jobs/stale", "", 200)
	wantFields(t, list, "staleJobs", "node")
	wantFields(t, list["staleJobs"].([]any)[0].(map[string]any), "jobId", "lastHeartbeat", "ageMinutes",
		"workspacePath", "recommendedAction")
	health := s.administer("GET", "/jobs/"+fresh+"/health", "", 200)
	wantFields(t, health, "jobId", "heartbeatStatus", "lastHeartbeat", "ageSeconds", "sentinelFileExists",
		"workspaceExists", "sessionDataExists", "node")
	if health["heartbeatStatus"] != "fresh" || health["sessionDataExists"] != true || health["node"] != "node-1" {
		t.Errorf("health: %v", health)
	}
	st := s.administer("GET", "/recovery/jobs/status", "", 200)
	wantFields(t, st["recovery"].(map[string]any), "state", "startedAt", "completedAt")
	wantFields(t, st["jobs"].([]any)[0].(map[string]any), "jobId", "status", "lastHeartbeat", "ageSeconds",
		"watchDeadline")
	wantFields(t, st["summary"].(map[string]any), "total", "watching", "reattached", "dead")
	found := s.administer("GET", "/recovery/jobs/sentinels", "", 200)["sentinels"].([]any)[0].(map[string]any)
	wantFields(t, found, "jobId", "workspacePath", "lastHeartbeat", "ageSeconds", "status", "sessionId", "agentEngine",
		"startedAt", "known", "hung", "valid", "error")
	wantFields(t, s.administer("GET", "/recovery/jobs/metrics", "", 200),
		"totalJobs", "reattachedCount", "failedCount", "successRate", "averageReattachSeconds", "lastScan", "node")
}

func wantFields(t *testing.T, got map[string]any, want ...string) {
	t.Helper()
	names := map[string]bool{}
	for _, name := range want {
		names[name] = true
	}
	have := map[string]bool{}
	for name := range got {
		have[name] = true
	}
	if diff := cmp.Diff(names, have); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestResumeMakesANewJob(t *testing.T) {
	s := start(t)
	id, lease := s.command(0, "agent")
	refused(t, s.call("POST", administration+"/recovery/jobs/resume", `{"jobId":"`+id+`"}`, with(s.admin)), 409,
		lessor.CodeConflict)
	s.api("POST", "/leases/"+lease+"/heartbeat", `{"worker_id":"w","checkpoint":{"page":7}}`, 200)
	health := s.administer("POST", "/jobs/"+id+"/mark-dead", "", 200)
	if health["heartbeatStatus"] != "dead" {
		t.Errorf("marked dead, it is %v", health)
	}
	failed := s.administer("GET", "/recovery/jobs/failed", "", 200)["failedJobs"].([]any)
	if one := failed[0].(map[string]any); len(failed) != 1 || one["jobId"] != id || one["resumable"] != true {
		t.Errorf("failed: %v", failed)
	}
	if err := os.WriteFile(filepath.Join(s.workspace.Path(), "jobs", id, id+".jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	resume := func(id, more, files string) (next string) {
		t.Helper()
		resumed := s.administer("POST", "/recovery/jobs/resume", `{"jobId":"`+id+`"`+more+`}`, 202)
		wantFields(t, resumed, "jobId", "newJobId", "status", "sessionFiles", "node")
		if resumed["jobId"] != id || resumed["status"] != "queued" || fmt.Sprint(resumed["sessionFiles"]) != files {
			t.Errorf("resumed: %v", resumed)
		}
		return resumed["newJobId"].(string)
	}
	next := resume(id, "", "2") // of the job, and of its sentinel
	if job := s.api("GET", "/jobs/"+next, "", 200); job["checkpoint"] == nil || job["type"] != "long" {
		t.Errorf("the new job: %v", job)
	}
	if again := refused(t, s.call("POST", administration+"/recovery/jobs/resume", `{"jobId":"`+id+`"}`, with(s.admin)),
		409, lessor.CodeConflict); !strings.Contains(again["detail"].(string), next) {
		t.Errorf("a second resume does not name the new job: %v", again)
	}
	events := s.api("GET", "/jobs/"+id+"/events", "", 200)["events"].([]any)
	if last := events[len(events)-1].(map[string]any); last["reason"] != "resumed_as "+next {
		t.Errorf("the record ends with %v", last)
	}
	s.api("POST", "/leases/request", `{"worker_id":"w","types":["long"]}`, 200)
	s.administer("POST", "/jobs/"+next+"/mark-dead", "", 200)
	last := resume(next, `,"fromCheckpoint":false`, "1")
	if job := s.api("GET", "/jobs/"+last, "", 200); job["checkpoint"] != nil {
		t.Errorf("resumed from the start with %v", job["checkpoint"])
	}
}

func walkRecovery(s *server) {
	id, _ := s.command(0, "agent")
	if err := os.MkdirAll(filepath.Join(s.workspace.Path(), "jobs", "no-id", ".sentinel.json"), 0o700); err != nil {
		s.t.Fatal(err)
	}
	s.administer("POST", "/recovery/scan", "{}", 200)
	for _, path := range []string{"heartbeats", "stale", "status", "sentinels", "metrics", "failed"} {
		s.administer("GET", "/recovery/jobs/"+path, "", 200)
	}
	s.administer("GET", "/jobs/"+id+"/health", "", 200)
	s.administer("POST", "/recovery/jobs/resume", `{"jobId":"`+id+`"}`, 409)
	s.administer("POST", "/jobs/"+id+"/mark-dead", "", 200)
	s.administer("POST", "/recovery/jobs/resume", `{"jobId":"`+id+`"}`, 202)
	s.administer("GET", "/recovery/cleanups", "", 200)
	s.administer("GET", "/recovery/jobs/failed", "", 200)
	waiting := s.api("POST", "/jobs", `{"type":"waits"}`, 201)["job_id"].(string)
	s.administer("GET", "/jobs/"+waiting+"/health", "", 200)
	s.administer("POST", "/jobs/"+waiting+"/mark-dead", "", 409)
	for _, none := range []string{nowhere, "ill-formed"} {
		s.administer("GET", "/jobs/"+none+"/health", "", 404)
		s.administer("POST", "/jobs/"+none+"/mark-dead", "", 404)
		s.administer("POST", "/recovery/jobs/resume", `{"jobId":"`+none+`"}`, 404)
	}
}
