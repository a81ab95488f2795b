package scheduler_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"lessor"
	"lessor/internal/scheduler"
)

// unread is a store whose settings cannot be read until the test says so.
type unread struct {
	scheduler.Store
	readable atomic.Bool
}

func (u *unread) View(ctx context.Context, fn func(scheduler.View) error) error {
	return u.Store.View(ctx, func(v scheduler.View) error { return fn(unreadView{v, u}) })
}

type unreadView struct {
	scheduler.View
	u *unread
}

func (v unreadView) Setting(ctx context.Context, name string) ([]byte, error) {
	if !v.u.readable.Load() {
		return nil, scheduler.ErrUnreachable
	}
	return v.View.Setting(ctx, name)
}

// What depends on settings that were not read yet is answered 503, never refused for good and never let through.
func TestNothingIsJudgedBeforeTheSettingsAreRead(t *testing.T) {
	u := &unread{}
	inWrappedWorld(t, func(s scheduler.Store) scheduler.Store { u.Store = s; return u }, func(t *testing.T, w *world) {
		typ, payload, units := "mail", []byte(`{"to": 1}`), int64(50)
		one := lessor.Submission{Type: &typ, Payload: payload}
		large := lessor.Submission{Type: &typ, RequestedUnits: &units}
		ticks := interval("daily", 60, func(e *lessor.Envelope) { e.HandlerID, e.Payload = &typ, payload })
		module := "m"
		calls := map[string]func() error{
			"submit":       func() error { _, err := w.Submit(w.ctx, anybody, one); return err },
			"submit large": func() error { _, err := w.Submit(w.ctx, anybody, large); return err },
			"submit batch": func() error {
				_, err := w.SubmitBatch(w.ctx, anybody, []lessor.Submission{one, large})
				return err
			},
			"put definition": func() error { _, _, err := w.PutDefinition(w.ctx, anybody, "daily", ticks); return err },
			"apply": func() error {
				_, err := w.Apply(w.ctx, anybody, lessor.Manifest{
					ModuleID: &module, TenantID: ticks.TenantID, Jobs: []lessor.Envelope{ticks},
				})
				return err
			},
			"status":   func() error { _, err := w.Status(w.ctx, anybody); return err },
			"capacity": func() error { _, err := w.Capacity(w.ctx); return err },
			"set capacity": func() error {
				_, err := w.SetCapacity(w.ctx, anybody, lessor.CapacityAsk{TotalUnits: lessor.SetTo(units)})
				return err
			},
			"drain":   func() error { _, err := w.SetDraining(w.ctx, anybody, true); return err },
			"workers": func() error { _, err := w.Workers(w.ctx, anybody); return err },
			"tenants": func() error { _, _, err := w.Tenants(w.ctx, anybody, 10, ""); return err },
			"classes": func() error { _, err := w.Classes(w.ctx, anybody, lessor.TenantID{}); return err },
			"figures": func() error { _, err := w.Figures(w.ctx); return err },
			"request": func() error {
				_, _, err := w.Request(w.ctx, anybody, lessor.LeaseRequest{WorkerID: &typ})
				return err
			},
			"why":         func() error { _, err := w.Why(w.ctx, anybody, lessor.JobID{}); return err },
			"set handler": func() error { _, _, err := w.SetHandler(w.ctx, anybody, typ, []byte(`{}`)); return err },
		}
		for name, call := range calls {
			e, refused := errors.AsType[*lessor.Error](call())
			if !refused || e.Code != lessor.CodeUnavailable || e.RetryAfter == 0 {
				t.Errorf("%s before the settings are read: %v, want unavailable with a time to come back", name, e)
			}
		}
		if w.Ready() == nil {
			t.Error("the scheduler is ready before the settings are read")
		}
		u.readable.Store(true)
		time.Sleep(2 * time.Second)
		for _, name := range []string{"submit", "submit large", "submit batch", "put definition", "status"} {
			if err := calls[name](); err != nil {
				t.Errorf("%s once the settings are read: %v", name, err)
			}
		}
	})
}

// A capacity that was set for a time counts no longer than that, also while nobody asks for work.
func TestSubmissionFitsOnceASmallCapacityHasEnded(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		if _, err := w.SetCapacity(w.ctx, anybody, lessor.CapacityAsk{
			TotalUnits: lessor.SetTo(int64(10)), ExpiresInS: new(int64(60)),
		}); err != nil {
			t.Fatalf("set capacity: %v", err)
		}
		units := int64(20)
		large := lessor.Submission{Type: new("large"), RequestedUnits: &units}
		_, err := w.Submit(w.ctx, anybody, large)
		w.wantCode(err, lessor.CodeInvalidValue)
		time.Sleep(61 * time.Second)
		if _, err := w.Submit(w.ctx, anybody, large); err != nil {
			t.Errorf("submit of %d units after the small capacity ended: %v", units, err)
		}
	})
}

// The end of a lease is shown as it will be when service begins, also before it does.
func TestLeaseShowsItsEffectiveEndBeforeServiceBegins(t *testing.T) {
	u := &unread{}
	u.readable.Store(true)
	inWrappedWorld(t, func(s scheduler.Store) scheduler.Store { u.Store = s; return u }, func(t *testing.T, w *world) {
		w.submit(func(s *lessor.Submission) { s.LockKey = new("the.lock") })
		w.lease("w1", nil)
		u.readable.Store(false)
		w.restart(time.Hour)
		time.Sleep(time.Hour)
		leases, _, err := w.Leases(w.ctx, anybody, "", 10, "")
		if want := now().Add(time.Minute); err != nil || len(leases) != 1 || leases[0].ExpiresAt != want {
			t.Errorf("after hours without service leases are %v (%v), want one until %s", leases, err, want)
		}
		locks, _, err := w.Locks(w.ctx, anybody, nil, 10, "")
		if want := now().Add(time.Minute); err != nil || len(locks) != 1 || locks[0].LockedUntil != want {
			t.Errorf("after hours without service locks are %v (%v), want one until %s", locks, err, want)
		}
	})
}
