package httpapi

import (
	"net/http"
	"net/netip"

	"lessor"
)

// Visitor is who asks for a page, as far as the request itself tells.
type Visitor struct {
	Local   bool       // needs no token where an operator's rights are enough: the loopback rule
	From    netip.Addr // where the request comes from
	Secure  bool       // the connection is encrypted, at least up to a proxy that we trust
	TraceID string     // under which faults are logged
}

// Pages answers what is no route of the API, and reports whether it had an answer. It is called behind the checks that hold for
// every request, and its answers are not part of the service that the busy rating looks at.
type Pages func(w http.ResponseWriter, r *http.Request, v Visitor) bool

// page passes a request on to the pages.
func (c *call) page() error {
	a := c.api
	if a.pages == nil {
		return errNoRoute
	}
	c.seen.Ignore()
	if !a.pages(c.w, c.r, Visitor{
		Local: a.tokens.Loaded() && a.isLocal(c.r), From: a.proxies.client(c.r), Secure: a.proxies.secure(c.r), TraceID: c.trace.id,
	}) {
		return errNoRoute
	}
	return nil
}

// Status is the HTTP status of a code; 500 for one that is unknown.
func Status(code lessor.Code) int {
	if s, ok := statuses[code]; ok {
		return s
	}
	return http.StatusInternalServerError
}
