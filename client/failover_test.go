package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lessor"
)

// gone returns the URL of a server that refuses connections.
func gone(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	return "http://" + ln.Addr().String()
}

// hangUp receives the request and closes the connection without an answer: the caller cannot know what happened.
func hangUp(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

const (
	unavailable = `{"code":"unavailable","detail":"store is full"}`
	lost        = `{"code":"unavailable","detail":"commit lost","outcome":"unknown"}`
)

// calls lists, for each kind of call, whether it may be repeated after it may have been received.
func calls() map[string]struct {
	safe bool
	call func(context.Context, *Client) error
} {
	type row = struct {
		safe bool
		call func(context.Context, *Client) error
	}
	id, lease := jobID(jobA), leaseID(leaseA)
	submit := func(s lessor.Submission) func(context.Context, *Client) error {
		return func(ctx context.Context, c *Client) error { _, err := c.SubmitJob(ctx, s); return err }
	}
	batch := func(s ...lessor.Submission) func(context.Context, *Client) error {
		return func(ctx context.Context, c *Client) error { _, err := c.SubmitBatch(ctx, s); return err }
	}
	keyed, plain := lessor.Submission{Type: new("a"), IdempotencyKey: new("k")}, lessor.Submission{Type: new("a")}
	return map[string]row{
		"job":        {true, func(ctx context.Context, c *Client) error { _, err := c.Job(ctx, id); return err }},
		"submit":     {false, submit(plain)},
		"submit key": {true, submit(keyed)},
		"batch":      {false, batch(keyed, plain)},
		"batch keys": {true, batch(keyed, keyed)},
		"cancel": {false, func(ctx context.Context, c *Client) error {
			_, err := c.Cancel(ctx, id, false)
			return err
		}},
		"retry": {false, func(ctx context.Context, c *Client) error { _, err := c.Retry(ctx, id); return err }},
		"heartbeat": {true, func(ctx context.Context, c *Client) error {
			_, err := c.Heartbeat(ctx, lease, lessor.Heartbeat{})
			return err
		}},
		"heartbeats": {true, func(ctx context.Context, c *Client) error {
			_, err := c.HeartbeatAll(ctx, "w", nil)
			return err
		}},
		"complete": {true, func(ctx context.Context, c *Client) error {
			return c.Complete(ctx, lease, lessor.Completion{})
		}},
		"completions": {true, func(ctx context.Context, c *Client) error {
			_, err := c.CompleteAll(ctx, "w", nil)
			return err
		}},
		"release": {true, func(ctx context.Context, c *Client) error {
			return c.Release(ctx, lease, lessor.Release{})
		}},
		"revoke": {false, func(ctx context.Context, c *Client) error { return c.Revoke(ctx, lease, "r") }},
		"capacity": {false, func(ctx context.Context, c *Client) error {
			_, err := c.SetCapacity(ctx, lessor.CapacityAsk{})
			return err
		}},
		"drain": {false, func(ctx context.Context, c *Client) error {
			_, err := c.SetDraining(ctx, true)
			return err
		}},
		"token": {false, func(ctx context.Context, c *Client) error {
			_, err := c.CreateToken(ctx, TokenRequest{})
			return err
		}},
		"del token": {false, func(ctx context.Context, c *Client) error {
			return c.DeleteToken(ctx, lessor.TokenID{})
		}},
	}
}

func TestOnlySafeCallsAreRepeatedAfterALostAnswer(t *testing.T) {
	doubts := map[string]http.HandlerFunc{
		"connection lost": hangUp,
		"outcome unknown": say(http.StatusServiceUnavailable, lost),
		"gateway":         say(http.StatusBadGateway, "<html>"),
	}
	for name, row := range calls() {
		for doubt, answer := range doubts {
			t.Run(name+"/"+doubt, func(t *testing.T) {
				first, second := serve(t, answer), serve(t, say(http.StatusOK, "{}"))
				err := row.call(t.Context(), connect(t, first.URL, second.URL))
				if row.safe {
					if err != nil || len(first.requests()) != 1 || len(second.requests()) != 1 {
						t.Errorf("asked %d and %d times, err %v; want once each and no error",
							len(first.requests()), len(second.requests()), err)
					}
					return
				}
				if err == nil || len(first.requests()) != 1 || len(second.requests()) != 0 {
					t.Errorf("asked %d and %d times, err %v; want the doubt reported after one try",
						len(first.requests()), len(second.requests()), err)
				}
			})
		}
	}
}

func TestEveryCallIsRepeatedWhenNothingHappened(t *testing.T) {
	for name, row := range calls() {
		t.Run(name, func(t *testing.T) {
			full, ok := serve(t, say(http.StatusServiceUnavailable, unavailable)), serve(t, say(http.StatusOK, "{}"))
			if err := row.call(t.Context(), connect(t, gone(t), full.URL, ok.URL)); err != nil {
				t.Fatal(err)
			}
			if len(full.requests()) != 1 || len(ok.requests()) != 1 {
				t.Errorf("asked %d and %d times", len(full.requests()), len(ok.requests()))
			}
		})
	}
}

func TestClientStaysWithTheServerThatAnswersAndComesBack(t *testing.T) {
	ctx := t.Context()
	status := http.StatusServiceUnavailable
	first := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if status != http.StatusOK {
			say(status, unavailable)(w, r)
			return
		}
		say(status, "{}")(w, r)
	})
	broken := false
	second := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if broken {
			hangUp(w, r)
			return
		}
		say(http.StatusOK, "{}")(w, r)
	})
	c := connect(t, first.URL, second.URL)
	for range 3 {
		if _, err := c.Status(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]int{1, 3}, []int{len(first.requests()), len(second.requests())}); diff != "" {
		t.Errorf("calls to first and second (-want +got):\n%s", diff)
	}
	status, broken = http.StatusOK, true
	if _, err := c.Status(ctx); err != nil {
		t.Fatal(err)
	}
	if n := len(first.requests()); n != 2 {
		t.Errorf("first was asked %d times, want 2: the client did not come back", n)
	}
}

func TestTriesAreBounded(t *testing.T) {
	full := serve(t, say(http.StatusServiceUnavailable, unavailable))
	_, err := connect(t, full.URL).Status(t.Context())
	if !errors.Is(err, lessor.ErrUnavailable) || len(full.requests()) != 3 {
		t.Errorf("%d tries, err %v; want 3 and unavailable", len(full.requests()), err)
	}
	_, err = connect(t, gone(t)).Status(t.Context())
	if u, ok := errors.AsType[*UnreachableError](err); !ok || u.MayHaveArrived {
		t.Errorf("err = %v, want unreachable and certainly not received", err)
	}
	many := strings.Split(strings.Repeat(full.URL+",", 15)+full.URL, ",")
	before := len(full.requests())
	_, _ = connect(t, many...).Status(t.Context())
	if n := len(full.requests()) - before; n != 16 {
		t.Errorf("%d tries with 16 servers, want each once", n)
	}
}

func TestPauseIsJitteredBoundedAndHonoursTheServer(t *testing.T) {
	for n := 1; n < 80; n++ {
		if d := roundPause(n, nil); d < lessor.RetryFirst/2 || d > lessor.RetryMax {
			t.Fatalf("pause %d is %s", n, d)
		}
	}
	e := &lessor.Error{Code: lessor.CodeUnavailable, RetryAfter: time.Hour}
	if d := roundPause(1, e); d < lessor.RetryMax/2 || d > lessor.RetryMax {
		t.Errorf("pause with Retry-After is %s", d)
	}
}

func TestRefusalsAreNotRepeated(t *testing.T) {
	for _, code := range []string{"rate_limited", "internal", "lease_not_found", "invalid_value"} {
		s := serve(t, say(http.StatusTeapot, `{"code":"`+code+`"}`))
		_, err := connect(t, s.URL, s.URL).Status(t.Context())
		if string(lessor.CodeOf(err)) != code || len(s.requests()) != 1 {
			t.Errorf("%s: %d tries, err %v", code, len(s.requests()), err)
		}
	}
}

// TestTokenGoesToItsServerOnly: of a list, only the server that the token is for gets it, in calls and in streams.
func TestTokenGoesToItsServerOnly(t *testing.T) {
	foreign := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	own := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
	c, err := New(Config{
		Server: foreign.URL + "," + own.URL, Token: "secret",
		TokenServer: strings.TrimPrefix(own.URL, "http://"),
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := c.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := own.header.Get("Authorization"); got != "Bearer secret" {
			t.Errorf("the token's server was sent %q", got)
		}
		if len(foreign.requests()) == 0 || foreign.header.Get("Authorization") != "" {
			t.Errorf("another server was asked %d times and sent %q",
				len(foreign.requests()), foreign.header.Get("Authorization"))
		}
	}
}

// TestCancelledCallStaysWithItsServer: a caller that gives up has learnt nothing about its server, and others may be
// down.
func TestCancelledCallStaysWithItsServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // from here on the server notices that its caller left
		cancel()
		<-r.Context().Done()
	}))
	defer slow.Close()
	c, err := New(Config{Server: slow.URL + "," + gone(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Job(ctx, jobID(jobA)); !errors.Is(err, context.Canceled) {
		t.Fatalf("the call ended with %v", err)
	}
	if _, base := c.servers.current(); base != slow.URL {
		t.Errorf("the next call goes to %s", base)
	}
}
