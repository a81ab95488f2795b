package node

import (
	"lessor/internal/config"
	"lessor/internal/httpapi"
)

// Access says in one line who needs a token, and why.
func (n *Node) Access() string {
	switch {
	case n.cfg.Auth == config.AuthRequired:
		return "every call needs a token (auth: required)"
	case len(n.cfg.HTTP.Hosts) > 0:
		return "every call needs a token (http.hosts is set)"
	case !n.tokenless():
		return "every call needs a token (this is no loopback address)"
	case n.tokens.Bound():
		return "every call needs a token (a token is bound to a tenant)"
	}
	return "callers on this machine need no token for most calls"
}

func (n *Node) tokenless() bool {
	return httpapi.Tokenless(n.cfg.Listen, n.cfg.HTTP.Hosts, n.cfg.Auth == config.AuthRequired)
}

// announceAccess logs when the first token that is bound to a tenant ends tokenless access, and when the last is
// gone. Whoever made or deleted it may have done so on another node.
func (n *Node) announceAccess(bound bool) {
	switch {
	case !n.tokenless():
	case bound:
		n.log.Warn("tokenless access has ended: a token is bound to a tenant, so every call needs one now")
	default:
		n.log.Warn("tokenless access is back: no token is bound to a tenant any more")
	}
}
