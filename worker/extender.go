package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of a LeaseExtender: an extension five times as long as the interval survives four beats that come late or fail.
const (
	DefaultExtensionInterval = 60 * time.Second
	DefaultExtension         = 300 * time.Second
)

// EveryBeat as an interval extends at every beat.
const EveryBeat time.Duration = -1

// extendTimeout bounds one extension: the work waits for it.
const extendTimeout = 10 * time.Second

// ErrAttached answers Attach while the extender is attached.
var ErrAttached = errors.New("lease extender is already attached")

// LeaseExtenderConfig says how beats extend a lease. The zero value is the default.
type LeaseExtenderConfig struct {
	// Interval is the least time between two extensions. Zero means DefaultExtensionInterval.
	Interval time.Duration
	// Extension is how long the message is hidden from an extension on, at most MaxVisibility. Zero means DefaultExtension.
	Extension time.Duration
	// Disabled makes Attach do nothing.
	Disabled bool
	// Log is told of extensions (debug) and failures (warn, at most one an interval). nil means slog.Default.
	Log *slog.Logger
}

// LeaseExtender extends the lease of a message when its work beats: the first beat after Attach extends, then at most one an
// interval, however many beat at once. An extension that fails is tried again at the next beat; the work goes on, since
// nothing is wrong yet. It has no goroutine and no timer, so work that hangs loses its lease.
type LeaseExtender struct {
	extension time.Duration
	disabled  bool
	log       *slog.Logger
	interval  time.Duration // as configured, zero at every beat
	pace      atomic.Int64  // the interval as it is now

	mu       sync.Mutex
	attached *attachment

	extensions, failures atomic.Int64
}

// attachment is one message and the heartbeat that keeps it.
type attachment struct {
	*LeaseExtender
	ctx      context.Context
	message  Message
	age      func() time.Duration // of the heartbeat
	extended atomic.Int64         // age at which the latest extension began
	warned   time.Duration        // age at the latest warning; only the holder of busy touches it
	busy     atomic.Bool          // an extension is under way
	over     atomic.Bool
}

// NewLeaseExtender returns an extender that is not attached.
func NewLeaseExtender(cfg LeaseExtenderConfig) *LeaseExtender {
	x := &LeaseExtender{extension: cfg.Extension, disabled: cfg.Disabled, log: cfg.Log}
	if x.extension <= 0 {
		x.extension = DefaultExtension
	}
	x.extension = min(x.extension, MaxVisibility)
	if x.log == nil {
		x.log = slog.Default()
	}
	if cfg.Interval == 0 {
		cfg.Interval = DefaultExtensionInterval
	}
	x.interval = max(0, cfg.Interval)
	x.Expect(0)
	return x
}

// Expect adapts the interval, from the next beat on, to work that may be silent for so long: it is shortened, at need down to
// every beat, so that a lease that was not extended just now still outlasts half as much again. Zero takes it back.
//
// It reports whether that is possible: more than two thirds of the extension cannot be bridged for sure.
func (x *LeaseExtender) Expect(silence time.Duration) bool {
	left := x.extension - silence - silence/2
	x.pace.Store(int64(min(x.interval, max(0, left))))
	return left >= 0
}

// Extension returns how long one extension hides the message.
func (x *LeaseExtender) Extension() time.Duration { return x.extension }

// Counts returns how many extensions were made and how many failed, over all messages.
func (x *LeaseExtender) Counts() (extensions, failures int64) {
	return x.extensions.Load(), x.failures.Load()
}

// never is before the start of every heartbeat by more than any interval.
const never = -1 << 62

// Attach lets the beats of hb extend m until detach is called, which may be done more than once and is meant for defer.
// Extensions end with ctx. One message at a time: while attached, Attach returns ErrAttached.
func (x *LeaseExtender) Attach(ctx context.Context, m Message, hb *Heartbeat) (detach func(), err error) {
	if x.disabled {
		return func() {}, nil
	}
	a := &attachment{LeaseExtender: x, ctx: ctx, message: m, age: hb.age, warned: never}
	a.extended.Store(never)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.attached != nil {
		return nil, ErrAttached
	}
	x.attached = a
	remove := hb.observe(a.beat)
	return sync.OnceFunc(func() {
		a.over.Store(true)
		remove()
		x.mu.Lock()
		defer x.mu.Unlock()
		x.attached = nil
	}), nil
}

// beat extends if that is due.
func (a *attachment) beat(at time.Duration) {
	if !a.due(at) || !a.busy.CompareAndSwap(false, true) {
		return
	}
	defer a.busy.Store(false)
	// What came before this observer took time, and another beat may have extended since.
	if now := a.age(); a.due(now) && !a.over.Load() {
		a.extend(now)
	}
}

func (a *attachment) due(at time.Duration) bool {
	return int64(at)-a.extended.Load() >= a.pace.Load()
}

func (a *attachment) extend(now time.Duration) {
	ctx, cancel := context.WithTimeout(a.ctx, extendTimeout)
	defer cancel()
	err := a.message.Extend(ctx, a.extension)
	switch {
	case err == nil:
		a.extensions.Add(1)
		a.extended.Store(int64(now))
		seconds := strconv.FormatFloat(a.extension.Seconds(), 'f', -1, 64)
		a.tell(slog.LevelDebug, "Extended visibility for message %s by %s seconds", a.message.ID(), seconds)
	case a.over.Load():
		// The message was finished meanwhile: nothing was left to extend.
	default:
		a.failures.Add(1)
		if now-a.warned >= a.interval {
			a.warned = now
			if errors.Is(err, ErrReceiptExpired) {
				err = ErrReceiptExpired // whatever a mailbox adds to it
			}
			a.tell(slog.LevelWarn, "Lease extension failed for message %s: %v", a.message.ID(), err)
		}
	}
}

// tell logs a line that people look for by its text.
func (a *attachment) tell(level slog.Level, format string, args ...any) {
	if a.log.Enabled(a.ctx, level) {
		a.log.Log(a.ctx, level, fmt.Sprintf(format, args...)) //nolint:sloglint // the wording is part of the contract
	}
}
