package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// The time limits of a connection, against clients that are slow on purpose. Handlers that need longer set their own
// (hold, body, push).
const (
	headerTime = 10 * time.Second
	readTime   = 30 * time.Second
	writeTime  = 30 * time.Second
	idleTime   = 2 * time.Minute
	maxHeader  = 32 * kib
	drainTime  = 10 * time.Second // for current requests when the server stops
)

// stoppingKey is the key of Serve's context, for handlers that hold requests open.
type stoppingKey struct{}

// connKey is the key of a request's connection.
type connKey struct{}

// Stopping is done when the server of ctx's request begins to stop. Handlers then finish their work; those that only
// wait end.
func Stopping(ctx context.Context) context.Context {
	if stop, ok := ctx.Value(stoppingKey{}).(context.Context); ok {
		return stop
	}
	return context.Background()
}

// Serve answers requests on ln with h until ctx is done. Then it accepts no new ones, ends those that only wait (long
// polls, streams), gives the others a bounded time, and returns nil. It closes ln.
func Serve(ctx context.Context, ln net.Listener, h http.Handler) error {
	log := slog.DiscardHandler
	if a, ok := h.(*API); ok {
		log = a.log.Handler()
	}
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime,
		IdleTimeout:    idleTime,
		MaxHeaderBytes: maxHeader, DisableGeneralOptionsHandler: true, // "OPTIONS *" is no route of ours
		ErrorLog: slog.NewLogLogger(log, slog.LevelWarn),
		// Requests outlive ctx: an interrupted commit would leave its caller in doubt.
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(context.WithoutCancel(ctx), stoppingKey{}, ctx)
		},
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if err := srv.Shutdown(bound); err != nil {
		_ = srv.Close() // the remaining requests had their time
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
