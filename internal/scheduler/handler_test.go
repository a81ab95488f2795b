package scheduler_test

import (
	"encoding/json"
	"testing"
	"time"

	"lessor"
)

// TestSchemaChecksOfAPassAreBounded registers a schema that many queued jobs violate: every pass ends a bounded number
// of them, until all have ended.
func TestSchemaChecksOfAPassAreBounded(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		const jobs = 900
		subs := make([]lessor.Submission, jobs)
		for i := range subs {
			subs[i].Type = new("mail.send")
		}
		if _, err := w.SubmitBatch(w.ctx, anybody, subs); err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.SetHandler(w.ctx, anybody, "mail.send", json.RawMessage(`{"required":["to"]}`)); err != nil {
			t.Fatal(err)
		}
		good := w.submit(func(s *lessor.Submission) {
			s.Type, s.Payload = new("mail.send"), json.RawMessage(`{"to":"x"}`)
		})
		if _, d := w.ask("worker-0", nil); d == nil {
			t.Error("a request without time to wait was granted something, want the jobs before it to be ended first")
		}
		got := w.poll(anybody, "worker-1", nil)
		time.Sleep(2 * time.Second)
		if g := got.Load(); g == nil || g.Job.ID != good.ID {
			t.Errorf("granted %+v, want the job behind those that the schema refuses", g)
		}
		w.mu.Lock()
		ended := 0
		for _, s := range w.stats {
			if ended += len(s.Ended); len(s.Ended) > 200 {
				t.Errorf("one pass ended %d jobs by the schema, want at most 200", len(s.Ended))
			}
		}
		w.mu.Unlock()
		if ended != jobs {
			t.Errorf("%d jobs were ended, want %d", ended, jobs)
		}
		w.noDrift()
	})
}

// TestRejectedJobsDoNotRaiseTheUnitsOfARequest: a request takes two small jobs, and the schema refuses both. The job
// that is granted in their place uses up its units; nothing more is granted.
func TestRejectedJobsDoNotRaiseTheUnitsOfARequest(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		for range 2 {
			w.submit(func(s *lessor.Submission) { s.Type = new("mail.send") })
		}
		if _, _, err := w.SetHandler(w.ctx, anybody, "mail.send", json.RawMessage(`{"required":["to"]}`)); err != nil {
			t.Fatal(err)
		}
		for units := range int64(2) {
			w.submit(func(s *lessor.Submission) { s.RequestedUnits = new(2 + units) })
		}
		grants, d := w.askMany("worker-1", func(r *lessor.LeaseRequest) {
			r.MaxUnits, r.MaxLeases = new(int64(2)), new(int64(4))
		})
		if d != nil || len(grants) != 1 || grants[0].Lease.CapacityUnits != 2 {
			t.Errorf("granted %+v, %+v, want one lease of two units", grants, d)
		}
		w.noDrift()
	})
}

// TestRejectedJobHoldsNothingBack: the schema refuses a job that has taken its lock, or the last unit. The request gets
// the next job at once, although it was denied another one while the first counted.
func TestRejectedJobHoldsNothingBack(t *testing.T) {
	for name, edit := range map[string]func(*lessor.Submission){
		"lock": func(s *lessor.Submission) { s.LockKey = new("the lock") },
		"unit": func(*lessor.Submission) {},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config()
			if name == "unit" {
				cfg.TotalUnits, cfg.ReserveUnits = 1, 0
			}
			inWorld(t, cfg, func(t *testing.T, w *world) {
				w.submit(func(s *lessor.Submission) { s.Type = new("mail.send"); edit(s) })
				_, _, err := w.SetHandler(w.ctx, anybody, "mail.send", json.RawMessage(`{"required":["to"]}`))
				if err != nil {
					t.Fatal(err)
				}
				good := w.submit(edit)
				grants, d := w.askMany("worker-1", func(r *lessor.LeaseRequest) { r.MaxLeases = new(int64(2)) })
				if d != nil || len(grants) != 1 || grants[0].Job.ID != good.ID {
					t.Errorf("granted %+v, %+v, want the job that the schema accepts", grants, d)
				}
				w.noDrift()
			})
		})
	}
}
