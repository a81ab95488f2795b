package client

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// DefaultServer is where `lessor serve` listens unless told otherwise.
const DefaultServer = "http://127.0.0.1:5377"

// maxServers bounds the list of servers: a call may visit all of them several times.
const maxServers = 16

// Config says how to reach Lessor. The zero value reaches a server on this machine.
type Config struct {
	// Server is a list of base URLs, separated by commas; HOST:PORT means http://HOST:PORT. Empty means DefaultServer.
	Server string
	// Token is sent as a bearer token; empty sends none.
	Token string
	// TokenServer, if set, is the only server of the list that Token is sent to, written as in Server.
	TokenServer string
	// HTTP sends the requests. nil means a client of its own.
	HTTP *http.Client
	// UserAgent is how the server's list of workers names this program. Empty means "lessor-go".
	UserAgent string
	// Timeout bounds one try, not counting the time that a lease request asked the server to wait. Zero means 15 s.
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
		return nil, errors.New("token: has characters that no token has (spaces, line ends or other control characters)")
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

// Close closes idle connections. Calls that are under way go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// newHTTP gives up on a host that does not answer early enough to try the next within a heartbeat's pace, keeps enough
// idle connections for a worker with many leases, and follows no redirect: the API has none, and
// a token must not travel to where a redirect points.
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

func parseServers(list string) (*servers, error) {
	if strings.TrimSpace(list) == "" {
		list = DefaultServer
	}
	var urls []string
	for part := range strings.SplitSeq(list, ",") {
		base, err := parseServer(part)
		if err != nil {
			return nil, err
		}
		urls = append(urls, base)
	}
	if len(urls) > maxServers {
		return nil, fmt.Errorf("server: %d are given, at most %d are allowed", len(urls), maxServers)
	}
	return &servers{urls: urls}, nil
}

// parseServer returns the base URL of one server.
func parseServer(s string) (string, error) {
	s = strings.TrimRight(strings.TrimSpace(s), "/")
	if host, port, err := net.SplitHostPort(s); err == nil && host != "" && isPort(port) {
		s = "http://" + s
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "", fmt.Errorf("server %q: %w", s, err)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.RawQuery != "", u.Fragment != "", u.User != nil:
		return "", fmt.Errorf("server %q: is not a base URL like %s", s, DefaultServer)
	}
	return s, nil
}

func isPort(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}
