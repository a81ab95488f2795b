package client

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
)

// maxServers bounds the list of servers, because a call may try each of them several times.
const maxServers = 16

// servers is the list of servers and the one in use. The calls of a client share it: once a call has found that a
// server is gone, the others do not try that server first.
type servers struct {
	urls []string
	at   atomic.Uint32
}

// current returns the server in use and its place in the list.
func (s *servers) current() (place uint32, base string) {
	place = s.at.Load()
	return place, s.urls[place]
}

// leave moves on to the server after the one at place, unless another call already left it.
func (s *servers) leave(place uint32) {
	s.at.CompareAndSwap(place, (place+1)%uint32(len(s.urls)))
}

// tries returns how often one call is tried: three rounds, but at most 12 tries, so that a call with a long list ends
// within seconds.
func (s *servers) tries() int { return min(3*len(s.urls), max(12, len(s.urls))) }

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
	switch at := strings.LastIndexByte(s, '@'); {
	case at >= 0 && (err != nil || u.User != nil): // what is before it may be a password
		return "", fmt.Errorf("server %q: has a user or password before the host; give a token instead", "…"+s[at:])
	case err != nil:
		return "", fmt.Errorf("server %q: %w", s, err)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.RawQuery != "", u.Fragment != "":
		return "", fmt.Errorf("server %q: is not a base URL like %s", s, DefaultServer)
	}
	return s, nil
}

func isPort(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}
