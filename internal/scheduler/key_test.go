package scheduler_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"lessor"
	"lessor/internal/scheduler"
)

// keyed is a submission of a job with an idempotency key.
func keyed(key string, payload int) lessor.Submission {
	return lessor.Submission{Type: new("generic"), IdempotencyKey: &key, Payload: fmt.Appendf(nil, `{"n":%d}`, payload)}
}

// TestRefusedCallTakesNoKeys: what is refused stores nothing, so it refuses no call that comes in the same batch, not
// even through a third one that had to wait for its own key.
func TestRefusedCallTakesNoKeys(t *testing.T) {
	store := &gatedStore{}
	inWrappedWorld(t, func(s scheduler.Store) scheduler.Store { store.Store = s; return store },
		func(t *testing.T, w *world) {
			if _, err := w.Submit(w.ctx, anybody, keyed("taken", 1)); err != nil {
				t.Fatal(err)
			}
			errs := make([]error, 6)
			submit := func(i int, subs ...lessor.Submission) func() {
				return func() {
					if len(subs) == 1 {
						_, errs[i] = w.Submit(w.ctx, anybody, subs[0])
						return
					}
					_, errs[i] = w.SubmitBatch(w.ctx, anybody, subs)
				}
			}
			w.inOneBatch(store,
				submit(0, keyed("a", 1), keyed("taken", 2)), // refused, and frees a
				submit(1, keyed("a", 2)),                    // takes a
				submit(2, keyed("a", 3), keyed("b", 1)),     // is refused for a, and frees b
				submit(3, keyed("b", 2)),                    // takes b
				submit(4, keyed("a", 2)),                    // is the same job as the second
				submit(5, keyed("b", 3), keyed("taken", 1)), // is refused for b
			)
			for i, err := range errs {
				refused := i == 0 || i == 2 || i == 5
				if refused {
					w.wantCode(err, lessor.CodeConflict)
				} else if err != nil {
					t.Errorf("call %d: %v, want a job", i, err)
				}
			}
			if n := w.depth(); n != 4 { // with the one that held the first commit
				t.Errorf("%d jobs are queued, want 4", n)
			}
		})
}

func TestBatchThatUsesAKeyTwiceSaysWhere(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		_, err := w.SubmitBatch(w.ctx, anybody, []lessor.Submission{keyed("x", 1), keyed("k", 1), keyed("k", 2)})
		e := w.wantCode(err, lessor.CodeConflict)
		if f := e.Fields[0]; f.Field != "jobs[2].idempotency_key" || !strings.Contains(f.Message, "jobs[1]") {
			t.Errorf("refused with %+v, want that jobs[2] has the key of jobs[1]", f)
		}
	})
}

// TestKnownKeyIsAnsweredThoughTheJobNoLongerFits repeats submissions after the capacity went down, or after a schema
// came that the payload breaks. A new key is refused then, and stays free.
func TestKnownKeyIsAnsweredThoughTheJobNoLongerFits(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		large := lessor.Submission{Type: new("large"), RequestedUnits: new(int64(50)), IdempotencyKey: new("large")}
		wrong := lessor.Submission{Type: new("mail.send"), IdempotencyKey: new("wrong")}
		first, err := w.SubmitBatch(w.ctx, anybody, []lessor.Submission{large, wrong})
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.SetCapacity(w.ctx, anybody, lessor.CapacityAsk{TotalUnits: lessor.SetTo(int64(40))})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.SetHandler(w.ctx, anybody, "mail.send", json.RawMessage(`{"required":["to"]}`)); err != nil {
			t.Fatal(err)
		}
		for i, sub := range []lessor.Submission{large, wrong} {
			again, err := w.Submit(w.ctx, anybody, sub)
			if err != nil || !again.Existing || again.Job.ID != first[i].Job.ID {
				t.Errorf("%s again: %+v, %v; want job %s", *sub.Type, again, err, first[i].Job.ID)
			}
			fresh := sub
			fresh.IdempotencyKey = new("new-" + *sub.IdempotencyKey)
			_, err = w.SubmitBatch(w.ctx, anybody, []lessor.Submission{large, wrong, fresh})
			e := w.wantCode(err, lessor.CodeInvalidValue)
			if len(e.Fields) != 1 || !strings.HasPrefix(e.Fields[0].Field, "jobs[2].") {
				t.Errorf("the refusal names %+v, want a field of jobs[2]", e.Fields)
			}
			small := lessor.Submission{Type: new("small"), IdempotencyKey: fresh.IdempotencyKey}
			if got, err := w.Submit(w.ctx, anybody, small); err != nil || got.Existing {
				t.Errorf("the key of a refused job: %+v, %v; want a new job", got, err)
			}
		}
	})
}
