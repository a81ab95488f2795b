package httpapi

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
	"lessor/internal/token"
)

var (
	errNoToken  = &lessor.Error{Code: lessor.CodeUnauthenticated, Detail: "a token is needed: Authorization: Bearer …"}
	errBadToken = &lessor.Error{Code: lessor.CodeUnauthenticated, Detail: "the token is not valid"}
	errBound    = &lessor.Error{
		Code:   lessor.CodeForbidden,
		Detail: "this concerns all tenants; a token bound to one is refused",
	}
	errTenant = &lessor.Error{Code: lessor.CodeForbidden, Detail: "the token is for another tenant"}
	errNoBook = &lessor.Error{
		Code: lessor.CodeUnavailable, Detail: "the server is starting: its access tokens are being read",
		RetryAfter: time.Second,
	}
)

// identify returns the caller, or refuses a caller without the scope. It checks a token also where none is needed, so
// that a wrong one is noticed early.
func (a *API) identify(r *http.Request, scope token.Scope) (scheduler.Caller, error) {
	if scope == token.Public {
		return scheduler.Caller{Actor: rules.ActorAnonymous}, nil
	}
	if !a.tokens.Loaded() {
		return scheduler.Caller{}, errNoBook
	}
	if len(r.Header.Values("Authorization")) == 0 {
		if scope.NeedsToken() || !a.isLocal(r) || !token.Operator.Allows(scope) {
			return scheduler.Caller{}, errNoToken
		}
		return scheduler.Caller{Actor: rules.ActorLocal}, nil
	}
	t, ok := a.tokens.Find(bearer(r.Header), lessor.At(time.Now()))
	if !ok {
		return scheduler.Caller{}, a.tokens.Wrong(a.proxies.client(r), time.Now())
	}
	return Holder(t, scope)
}

// guard returns a context that also ends when the caller loses access, with the refusal as its cause. Callers of guard
// must call release.
func (c *call) guard(ctx context.Context) (guarded context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	hash, why := token.Tokenless, errNoToken
	if len(c.r.Header.Values("Authorization")) > 0 {
		hash, why = token.Hash(bearer(c.r.Header)), errBadToken
	}
	forget := c.api.tokens.Hold(hash, func() { cancel(why) })
	return ctx, func() {
		forget()
		cancel(nil)
	}
}

// Holder returns the caller with token t, or refuses if t lacks the scope.
func Holder(t scheduler.Token, scope token.Scope) (scheduler.Caller, error) {
	switch {
	case !token.Role(t.Role).Allows(scope):
		return scheduler.Caller{}, &lessor.Error{
			Code:   lessor.CodeForbidden,
			Detail: fmt.Sprintf("the token has the role %s, and this needs %s", t.Role, scope.Holders()),
		}
	case t.Tenant != nil && scope.RefusesTenants():
		return scheduler.Caller{}, errBound
	}
	c := scheduler.Caller{Actor: t.Name, Tenant: t.Tenant, Token: t.ID, Worker: token.Role(t.Role) == token.Worker}
	if !rules.Nameable(t.Name) {
		c.Actor = t.ID.String()
	}
	return c, nil
}

// bearer returns the token of an Authorization header, "" if there is not exactly one of that kind.
func bearer(h http.Header) string {
	vs := h.Values("Authorization")
	if len(vs) != 1 {
		return ""
	}
	scheme, secret, _ := strings.Cut(vs[0], " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(secret)
}

// Tokenless reports whether a server with these settings accepts callers on its own machine without a token, as long as
// no token is restricted to a tenant.
func Tokenless(listen string, hosts []string, required bool) bool {
	return isLoopback(hostOf(listen)) && len(hosts) == 0 && !required
}

// isLocal is the loopback rule: on a loopback address a caller on this machine needs no token, as long as no token is
// restricted to a tenant. A request that looks forwarded does not count: a proxy on this machine would make every
// caller local.
func (a *API) isLocal(r *http.Request) bool {
	return a.tokenless && !a.tokens.Bound() && isLoopbackPeer(r.RemoteAddr) && isLoopback(hostOf(r.Host)) &&
		!isForwarded(r.Header)
}

// isLoopbackPeer reports whether a connection comes from this machine. "pipe" is the address of net.Pipe, which does
// not leave the process.
func isLoopbackPeer(remote string) bool {
	if remote == "pipe" {
		return true
	}
	host, _, err := net.SplitHostPort(remote)
	return err == nil && isLoopback(host)
}

// forwarding lists the headers that proxies set, besides those that begin with X-Forwarded.
var forwarding = []string{
	"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-Forwarded-For",
	"X-Original-Host",
	"True-Client-Ip", "Cf-Connecting-Ip", "Fastly-Client-Ip", "X-Envoy-External-Address", "X-Proxyuser-Ip", "Client-Ip",
}

func isForwarded(h http.Header) bool {
	for name := range h { // of which there are fewer than of those
		if strings.HasPrefix(name, "X-Forwarded") || slices.Contains(forwarding, name) {
			return true
		}
	}
	return false
}

// ownTenant refuses a caller that is restricted to one tenant and names another. rules refuses what is no uuid.
func (c *call) ownTenant(named *string) error {
	if c.caller.Tenant == nil || named == nil {
		return nil
	}
	if u, err := lessor.ParseUUID(*named); err == nil && u != c.caller.Tenant.UUID {
		return errTenant
	}
	return nil
}
