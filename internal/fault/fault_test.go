package fault

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func boom() { panic("boom") }

func TestTryReturnsAndReportsAFault(t *testing.T) {
	var reported *Fault
	err := Try(HTTP, func(f *Fault) { reported = f }, func() error { boom(); return nil })
	f, isFault := errors.AsType[*Fault](err)
	if !isFault || f != reported || f.Place != HTTP || f.Value != "boom" || !strings.Contains(string(f.Stack), "boom") {
		t.Errorf("a panic gives %+v and reports %+v", err, reported)
	}
	plain := errors.New("plain")
	report := func(*Fault) { t.Error("an error was reported") }
	if err := Try(HTTP, report, func() error { return plain }); !errors.Is(err, plain) {
		t.Errorf("an error became %v", err)
	}
}

func TestKeepRunsAgainAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs, faults, began := 0, 0, time.Now()
		Keep(t.Context(), Alerts, func(*Fault) { faults++ }, func(context.Context) {
			if runs++; runs < 3 {
				boom()
			}
		})
		if runs != 3 || faults != 2 || time.Since(began) != 2*restart {
			t.Errorf("%d runs and %d faults in %v, want 3, 2 and %v", runs, faults, time.Since(began), 2*restart)
		}
		ctx, cancel := context.WithCancel(t.Context())
		Keep(ctx, Alerts, func(*Fault) { cancel() }, func(context.Context) { boom() }) // it returns
	})
}

func TestGroupPassesAPanicOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	g := Group{Cancel: cancel}
	var ended atomic.Bool
	g.Go(boom)
	g.Go(func() { <-ctx.Done(); ended.Store(true) })
	err := Try(Recovery, func(*Fault) {}, func() error { g.Wait(); return nil })
	f, isFault := errors.AsType[*Fault](err)
	if !isFault || f.Place != Recovery || !strings.Contains(string(f.Stack), "fault.boom") || !ended.Load() {
		t.Errorf("the one that waits gets %v, and the other goroutine ended: %v", err, ended.Load())
	}
}
