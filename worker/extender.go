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

// The defaults of a LeaseExtender. An extension is five times as long as the interval, so it survives four late or
// failed beats.
const (
	DefaultExtensionInterval = 60 * time.Second
	DefaultExtension         = 300 * time.Second
)

// EveryBeat is an interval that extends the lease at every beat.
const EveryBeat time.Duration = -1

// extendTimeout bounds one extension, because the work waits for it.
const extendTimeout = 10 * time.Second

// ErrAttached is the error of Attach while the extender is attached.
var ErrAttached = errors.New("lease extender is already attached")

// errNotMade is the error of Attach of a zero LeaseExtender, which would extend by nothing.
var errNotMade = errors.New("lease extender was not made by NewLeaseExtender")

// LeaseExtenderConfig configures a LeaseExtender. The zero value takes all defaults.
type LeaseExtenderConfig struct {
	// Interval is the shortest time between two extensions. The default is DefaultExtensionInterval.
	Interval time.Duration
	// Extension is how long one extension hides the message, at most MaxVisibility. The default is DefaultExtension.
	Extension time.Duration
	// Disabled makes Attach do nothing.
	Disabled bool
	// Log receives extensions (debug) and failures (warn, at most one per interval). The default is slog.Default.
	Log *slog.Logger
}

// LeaseExtender extends the lease of a message when its work beats: at the first beat after Attach, and then at most
// once per interval, however many goroutines beat. If an extension fails, the next beat tries again and the work
// continues. A LeaseExtender has no goroutine and no timer, so work that hangs loses its lease. NewLeaseExtender makes
// one; the zero value cannot be attached.
type LeaseExtender struct {
	extension time.Duration
	disabled  bool
	log       *slog.Logger
	interval  time.Duration // as configured; zero extends at every beat
	pace      atomic.Int64  // the current interval, see Expect

	mu       sync.Mutex
	attached *attachment

	extensions, failures atomic.Int64
}

// attachment is one message and the heartbeat that extends it.
type attachment struct {
	*LeaseExtender
	ctx      context.Context
	message  Extendable
	age      func() time.Duration // of the heartbeat
	extended atomic.Int64         // age at which the latest extension began
	warned   time.Duration        // age at the latest warning; guarded by busy
	busy     atomic.Bool          // an extension is in progress
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

// Expect prepares for work that may be silent for the given time. From the next beat on it shortens the interval, if
// necessary to every beat, so that a lease that was just not extended still outlasts one and a half times the
// silence. Zero restores the configured interval.
//
// It reports whether that is possible: a silence of more than two thirds of the extension cannot be bridged for
// certain.
func (x *LeaseExtender) Expect(silence time.Duration) bool {
	left := x.extension - silence - silence/2
	x.pace.Store(int64(min(x.interval, max(0, left))))
	return left >= 0
}

// Extension returns how long one extension hides the message.
func (x *LeaseExtender) Extension() time.Duration { return x.extension }

// Counts returns how many extensions succeeded and how many failed, over all messages.
func (x *LeaseExtender) Counts() (extensions, failures int64) {
	return x.extensions.Load(), x.failures.Load()
}

// Extendable is what a LeaseExtender extends: a Message, or anything else under a lease.
type Extendable interface {
	// ID names it in the log.
	ID() string
	// Extend makes its lease live for at least d from now.
	Extend(ctx context.Context, d time.Duration) error
}

// never is an age that lies before the start of every heartbeat by more than any interval.
const never = -1 << 62

// Attach makes the beats of hb extend m until detach is called or ctx is done. detach may be called more than once
// and is meant for defer. An extender serves one message at a time: Attach returns ErrAttached while it is attached.
func (x *LeaseExtender) Attach(ctx context.Context, m Extendable, hb *Heartbeat) (detach func(), err error) {
	if x.disabled {
		return func() {}, nil
	}
	if x.extension == 0 {
		return nil, errNotMade
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

// beat extends the lease if an extension is due.
func (a *attachment) beat(at time.Duration) {
	if !a.due(at) || !a.busy.CompareAndSwap(false, true) {
		return
	}
	defer a.busy.Store(false)
	// Earlier observers took time, and another beat may have extended the lease since.
	if now := a.age(); a.due(now) && !a.over.Load() && a.ctx.Err() == nil {
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
		a.logLine(slog.LevelDebug, "Extended visibility for message %s by %s seconds", a.message.ID(), seconds)
	case a.over.Load() || a.ctx.Err() != nil:
		// The message was finished meanwhile, or the worker stops.
	default:
		a.failures.Add(1)
		if now-a.warned >= a.interval {
			a.warned = now
			if errors.Is(err, ErrReceiptExpired) {
				err = ErrReceiptExpired // without the text that a mailbox adds
			}
			a.logLine(slog.LevelWarn, "Lease extension failed for message %s: %v", a.message.ID(), err)
		}
	}
}

// logLine logs a line whose text is part of the contract.
func (a *attachment) logLine(level slog.Level, format string, args ...any) {
	if a.log.Enabled(a.ctx, level) {
		a.log.Log(a.ctx, level, fmt.Sprintf(format, args...)) //nolint:sloglint // see above
	}
}
