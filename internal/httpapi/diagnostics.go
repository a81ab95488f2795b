package httpapi

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"runtime/pprof"
	execution "runtime/trace"
	"slices"
	"strings"
	"time"

	"lessor"
	"lessor/internal/token"
)

func diagnosticRoutes() []route {
	const level = administration + "/log-level"
	return []route{{
		method: http.MethodGet, path: level, scope: token.Administer,
		summary: "Show the least level that this node logs.",
		handle:  plain((*call).logLevel), answers: answers(http.StatusOK, levelBody{}),
	}, {
		method: http.MethodPut, path: level, scope: token.Administer,
		summary: "Change the least level that this node logs, until it stops.",
		handle:  takes(bodySmall, (*call).setLogLevel), answers: answers(http.StatusOK, levelBody{}),
	}, {
		method: http.MethodGet, path: administration + "/pprof/{profile}", scope: token.Administer, stream: true,
		summary: "Take a profile of this node: allocs, block, goroutine, heap, mutex and threadcreate at once, " +
			"profile (CPU) and trace over some seconds.",
		query:  []string{"seconds"},
		handle: plain((*call).pprof), answers: answers(http.StatusOK, "application/octet-stream"),
		refusals: codes(lessor.CodeConflict),
	}}
}

// levelBody is the level of the log, as asked for and as shown.
type levelBody struct {
	Level *string `json:"level"`
}

// levels are the names of levels, as in the configuration.
var levels = []string{"debug", "info", "warn", "error"}

func (c *call) logLevel() error {
	return c.answer(http.StatusOK, levelBody{new(strings.ToLower(c.api.level.Level().String()))})
}

func (c *call) setLogLevel(b *levelBody) error {
	var l slog.Level
	if !slices.Contains(levels, *b.Level) || l.UnmarshalText([]byte(*b.Level)) != nil {
		return badValue("level", "must be debug, info, warn or error")
	}
	was := c.api.level.Level()
	c.api.level.Set(l)
	c.api.log.LogAttrs(c.r.Context(), max(l, slog.LevelInfo), "log level changed",
		slog.String("from", was.String()), slog.String("to", l.String()),
		slog.String("actor", c.caller.Actor), slog.String("trace_id", c.trace.id))
	return c.logLevel()
}

// The time over which a profile is taken, if it is not taken at once.
const (
	defaultSeconds = 10
	maxSeconds     = 60
)

var errProfiling = &lessor.Error{
	Code:   lessor.CodeConflict,
	Detail: "such a profile is being taken; only one can be at a time",
}

// pprof takes a profile. net/http/pprof is not used, because importing it registers profiles on the program's default
// mux.
func (c *call) pprof() error {
	name, over := c.r.PathValue("profile"), int(cmp.Or(orZero(c.number("seconds")), defaultSeconds))
	c.seen.Ignore()
	header := c.w.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Disposition", `attachment; filename="lessor.pprof"`)
	switch p := pprof.Lookup(name); {
	case p != nil:
		return p.WriteTo(c.w, 0)
	case name == "profile":
		return c.during(over, pprof.StartCPUProfile(c.w), pprof.StopCPUProfile)
	case name == "trace":
		return c.during(over, execution.Start(c.w), execution.Stop)
	}
	header.Del("Content-Disposition")
	return badValue("profile", "must be allocs, block, goroutine, heap, mutex, threadcreate, profile or trace")
}

// during stops a started profile after some seconds, or when the client leaves.
func (c *call) during(seconds int, started error, stop func()) error {
	if started != nil {
		c.w.Header().Del("Content-Disposition")
		return errProfiling
	}
	defer stop()
	guarded, release := c.guard(c.r.Context())
	defer release()
	ctx, cancel := context.WithTimeout(guarded, time.Duration(seconds)*time.Second)
	defer cancel()
	select {
	case <-ctx.Done():
	case <-Stopping(c.r.Context()).Done():
	}
	return nil
}

type health struct {
	Status string `json:"status"`
}

// live says that the process answers.
func (c *call) live() error { return c.answer(http.StatusOK, health{"live"}) }

// ready says whether requests can be answered. It is public, so it does not show the detail of a fault.
func (c *call) ready() error {
	if err := c.api.scheduler.Ready(); err != nil {
		return err
	}
	if !c.api.tokens.Loaded() {
		return errNoBook
	}
	return c.answer(http.StatusOK, health{"ready"})
}

func (c *call) metrics() error {
	c.api.telemetry.Handler().ServeHTTP(c.w, c.r)
	return nil
}

func (c *call) describe() error {
	c.w.Header().Set("Content-Type", "application/json")
	_, _ = c.w.Write(c.api.document)
	return nil
}
