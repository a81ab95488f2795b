package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strings"

	"lessor/internal/token"
)

// trace is the request's part of a W3C trace.
type trace struct {
	id    string // 32 hexadecimal digits
	span  string // 16, of this server
	given string // id if the caller sent it, else ""
	flags string
}

// continueTrace continues the caller's trace, or begins one. An ill-formed header counts as none (W3C Trace Context,
// 3.2.2.3).
func continueTrace(h http.Header) trace {
	if vs := h.Values("Traceparent"); len(vs) == 1 {
		if id, flags, ok := parseTraceparent(vs[0]); ok {
			return trace{id: id, span: randomHex(8), given: id, flags: flags}
		}
	}
	digits := randomHex(16 + 8)
	return trace{id: digits[:32], span: digits[32:], flags: "00"}
}

// parent returns the header of the answer: the trace, and a span of this server.
func (t trace) parent() string { return "00-" + t.id + "-" + t.span + "-" + t.flags }

// beginSpan begins a span if tracing is on. It leaves out polls and heartbeats without a trace, which would hide the
// rest.
func (c *call) beginSpan() {
	if c.api.traces == nil || c.route.unrated || c.route.scope == token.Lease && c.trace.given == "" {
		return
	}
	sent := http.Header{}
	if c.trace.given != "" {
		sent = c.r.Header
	}
	var ctx context.Context
	ctx, c.span = c.api.traces.Call(c.r.Context(), sent, c.trace.id, c.route.method, c.route.path)
	c.r = c.r.WithContext(ctx)
	c.w.Header().Set("Traceparent", c.span.Traceparent())
}

// parseTraceparent reads version-trace-parent-flags. A later version may have more after the flags.
func parseTraceparent(s string) (id, flags string, ok bool) {
	parts := strings.SplitN(s, "-", 5)
	if len(parts) < 4 || len(parts) == 5 && parts[0] == "00" {
		return "", "", false
	}
	version, id, parent, flags := parts[0], parts[1], parts[2], parts[3]
	ok = isHex(version, 2) && version != "ff" && isHex(id, 32) && strings.Trim(id, "0") != "" &&
		isHex(parent, 16) && strings.Trim(parent, "0") != "" && isHex(flags, 2)
	return id, flags, ok
}

// isHex reports whether s is n lower-case hexadecimal digits.
func isHex(s string, n int) bool { return len(s) == n && strings.Trim(s, "0123456789abcdef") == "" }

func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}
