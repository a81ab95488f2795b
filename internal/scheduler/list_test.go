package scheduler_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"lessor"
)

// TestListsAreBoundedInBytes lists jobs of 200 KiB each: a page has at most about 16 MiB of them, and all are found in
// order.
func TestListsAreBoundedInBytes(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		const jobs, size = 180, 200 << 10
		payload := json.RawMessage(`{"a":"` + strings.Repeat("x", size) + `"}`)
		var ids []lessor.JobID
		for range jobs / 60 {
			subs := make([]lessor.Submission, 60)
			for i := range subs {
				subs[i] = lessor.Submission{Type: new("large"), Payload: payload}
			}
			made, err := w.SubmitBatch(w.ctx, anybody, subs)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range made {
				ids = append(ids, m.Job.ID)
			}
		}
		small := w.submit(nil)
		found := []lessor.JobID{}
		pages := 0
		for cursor := ""; ; pages++ {
			list, next, err := w.Jobs(w.ctx, anybody, lessor.JobFilter{Limit: 1000, Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			sum := 0
			for _, job := range list {
				sum += len(job.Payload)
				found = append(found, job.ID)
			}
			if sum > 16<<20 {
				t.Errorf("a page has %d jobs with %d bytes, want at most 16 MiB", len(list), sum)
			}
			if next == "" {
				break
			}
			cursor = next
		}
		if pages != 2 || len(found) != jobs+1 || found[0] != small.ID || found[jobs] != ids[0] {
			t.Errorf("%d jobs on %d pages after the first, want %d on 2", len(found), pages, jobs+1)
		}
	})
}

// TestRunsOfADefinitionWhoseIDLooksLikeAJobs pages through the runs of a definition that somebody named with a uuid.
func TestRunsOfADefinitionWhoseIDLooksLikeAJobs(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		const id = "d01d407f-0ba8-462b-bcb0-fe1964dc8969"
		w.put(interval(id, 3600, nil))
		var want []lessor.JobID
		for range 3 {
			run, err := w.Trigger(w.ctx, anybody, id, nil)
			if err != nil {
				t.Fatal(err)
			}
			w.mustComplete(w.lease("worker-1", nil), "completed")
			want = append([]lessor.JobID{run}, want...)
		}
		var got []lessor.JobID
		for f := (lessor.RunFilter{JobID: id, Limit: 1}); ; {
			page, next, err := w.Runs(w.ctx, anybody, f)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page {
				got = append(got, r.RunID)
			}
			if f.Cursor = next; next == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("the runs are %v, want %v", got, want)
		}
	})
}

// TestCursorsNameNoJob: a list that has read enough rows ends at the last job that it read, which may belong to another
// tenant.
func TestCursorsNameNoJob(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		for range 3 {
			w.submit(nil)
			w.mustComplete(w.lease("worker-1", nil), "completed")
		}
		jobs, ofJobs, err := w.Jobs(w.ctx, anybody, lessor.JobFilter{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		runs, ofRuns, err := w.Runs(w.ctx, anybody, lessor.RunFilter{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if jobs[0].ID != runs[0].RunID {
			t.Fatalf("job %s, run %s, want the same", jobs[0].ID, runs[0].RunID)
		}
		for name, cursor := range map[string]string{"jobs": ofJobs, "runs": ofRuns} {
			raw, err := base64.RawURLEncoding.DecodeString(cursor)
			if err != nil || len(raw) != 16 || bytes.HasPrefix(raw, jobs[0].ID.UUID[:4]) {
				t.Errorf(
					"the cursor of %s behind job %s is %q, want 16 bytes that are sealed", name, jobs[0].ID, cursor,
				)
			}
		}
		for _, made := range []string{jobs[0].ID.String(), "x", ofJobs + "AAAA"} {
			if _, _, err := w.Jobs(w.ctx, anybody, lessor.JobFilter{
				Limit: 1, Cursor: made,
			}); lessor.CodeOf(err) != lessor.CodeInvalidValue {
				t.Errorf("jobs behind %q: %v, want a refusal", made, err)
			}
			if _, _, err := w.Runs(w.ctx, anybody, lessor.RunFilter{
				Limit: 1, Cursor: made,
			}); lessor.CodeOf(err) != lessor.CodeInvalidValue {
				t.Errorf("runs behind %q: %v, want a refusal", made, err)
			}
		}
	})
}
