package scheduler_test

import (
	"encoding/json"
	"strings"
	"testing"

	"lessor"
)

// TestListsAreBoundedInBytes lists jobs of 200 KiB each: a page has at most about 16 MiB of them, and all are found in order.
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
			if sum := len(list) * size; sum > 17<<20 {
				t.Errorf("a page has %d jobs with %d bytes, want at most 16 MiB", len(list), sum)
			}
			for _, job := range list {
				found = append(found, job.ID)
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
