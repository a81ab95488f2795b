package client

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"time"
)

// DefaultServer is the default address of `lessor serve`.
const DefaultServer = "http://127.0.0.1:5377"

// Config configures a Client. The zero value reaches a server on this machine.
type Config struct {
	// Server is a list of base URLs, separated by commas; HOST:PORT means http://HOST:PORT. The default is
	// DefaultServer.
	Server string
	// Token is the bearer token. The default is none.
	Token string
	// TokenServer restricts Token to one server of the list. By default all servers receive it.
	TokenServer string
	// HTTP sends the requests. The default is a client with timeouts that suit heartbeats.
	HTTP *http.Client
	// UserAgent names this program in the server's list of workers. The default is "lessor-go".
	UserAgent string
	// Timeout bounds one try, without the time that a lease request lets the server wait. The default is 15 s.
	Timeout time.Duration
}

// Client calls a Lessor server.
type Client struct {
	servers     *servers
	token       string
	tokenServer string // "" = all
	agent       string
	http        *http.Client
	timeout     time.Duration
}

// New checks cfg and returns a Client. It does not connect.
func New(cfg Config) (*Client, error) {
	list, err := parseServers(cfg.Server)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(cfg.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("token: it contains spaces, line ends or other characters that no token has")
	}
	if cfg.TokenServer != "" {
		if cfg.TokenServer, err = parseServer(cfg.TokenServer); err != nil {
			return nil, err
		}
	}
	c := &Client{
		servers: list, token: cfg.Token, tokenServer: cfg.TokenServer, agent: cfg.UserAgent, http: cfg.HTTP,
		timeout: cfg.Timeout,
	}
	if c.agent == "" {
		c.agent = "lessor-go"
	}
	if c.timeout <= 0 {
		c.timeout = 15 * time.Second
	}
	if c.http == nil {
		c.http = newHTTP()
	}
	return c, nil
}

// Close closes idle connections. Calls in progress continue.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// newHTTP returns a client that gives up on a silent host early enough to try the next server between two heartbeats,
// and that keeps enough idle connections for a worker with many leases. It follows no redirects: the API has none, and
// a token must not be sent to the target of a redirect.
func newHTTP() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout: 5 * time.Second,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: 64,
			IdleConnTimeout:     90 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
