package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/pprof"
	execution "runtime/trace"
	"slices"
	"strconv"
	"strings"
	"time"

	"lessor"
	"lessor/internal/token"
)

func diagnosticRoutes() []route {
	const level = administration + "/log-level"
	return []route{{
		method: http.MethodGet, path: level, scope: token.Administer, summary: "Show the least level that this node logs.",
		handle: plain((*call).logLevel), answers: answers(http.StatusOK, levelBody{}),
	}, {
		method: http.MethodPut, path: level, scope: token.Administer, summary: "Change the least level that this node logs, until it stops.",
		handle: takes(bodySmall, (*call).setLogLevel), answers: answers(http.StatusOK, levelBody{}),
	}, {
		method: http.MethodGet, path: administration + "/pprof/{profile}", scope: token.Administer, stream: true,
		summary: "Take a profile of this node: allocs, block, goroutine, heap, mutex and threadcreate at once, profile (CPU) and trace over some seconds.",
		query:   []string{"seconds"},
		handle:  plain((*call).pprof), answers: answers(http.StatusOK, "application/octet-stream"), refusals: codes(lessor.CodeConflict),
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
		slog.String("from", was.String()), slog.String("to", l.String()), slog.String("actor", c.caller.Actor), slog.String("trace_id", c.trace.id))
	return c.logLevel()
}

// The time over which a profile is taken, if it is not taken at once.
const (
	defaultSeconds = 10
	maxSeconds     = 60
)

var errProfiling = &lessor.Error{Code: lessor.CodeConflict, Detail: "such a profile is being taken; only one can be at a time"}

// pprof takes a profile. net/http/pprof is not used: to import it opens profiles to whoever reaches the default mux of the program.
func (c *call) pprof() error {
	name, over := c.r.PathValue("profile"), defaultSeconds
	if s := c.query.Get("seconds"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > maxSeconds {
			return badValue("seconds", "must be 1 to 60")
		}
		over = n
	}
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

// during stops a profile that was started after some seconds, or when nobody waits for it any more.
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
