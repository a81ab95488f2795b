package node

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"lessor"
	"lessor/client"
)

// TestTokenDeletedOnOneNodeEndsStreamsOnAnother: the streams, waiting requests and sessions of a deleted token end
// within the promised 5 s.
func TestTokenDeletedOnOneNodeEndsStreamsOnAnother(t *testing.T) {
	store := pool.Database(t)
	const admin = "the-admin-of-both"
	start := func() string {
		cfg := testConfig(t)
		cfg.Store, cfg.AdminToken, cfg.RequireToken = store, admin, true
		_, address := serve(t, cfg)
		return "http://" + address
	}
	here, there := start(), start()
	connect := func(server, token string) *client.Client {
		c, err := client.New(client.Config{Server: server, Token: token})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ops := connect(here, admin)
	made, err := ops.CreateToken(ctx, client.TokenRequest{Role: "operator"})
	if err != nil {
		t.Fatal(err)
	}
	theirs := connect(there, made.Token)
	for { // until the other node knows the token
		if _, err = theirs.Status(ctx); err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("the other node does not learn of the token: %v", err)
		}
		time.Sleep(300 * time.Millisecond) // 20 wrong tokens a minute are allowed
	}
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, there+"/api/system/scheduler/events", nil)
	r.Header.Set("Authorization", "Bearer "+made.Token)
	stream, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), ":") {
		t.Fatalf("the stream begins with %q, want a comment line", lines.Text())
	}
	page := pageOf(ctx, t, here, there, made.Token)
	if status := page(); status != http.StatusOK {
		t.Errorf("a session of one node gets %d on the other, want 200", status)
	}
	polled := make(chan error, 1)
	go func() {
		for { // a request may be denied at once, and only a waiting one ends with the token
			if _, denied, err := theirs.Request(ctx,
				lessor.LeaseRequest{WorkerID: new("w"), WaitMS: new(int64(30_000))}); denied == nil {
				polled <- err
				return
			}
		}
	}()
	if err := ops.DeleteToken(ctx, made.ID); err != nil {
		t.Fatal(err)
	}
	gone := time.Now()
	for lines.Scan() {
	}
	if d := time.Since(gone); d > 5*time.Second || lines.Err() != nil {
		t.Errorf("the stream ended %v after its token was deleted (%v), want a clean end within 5 s", d, lines.Err())
	}
	if status := page(); status != http.StatusSeeOther {
		t.Errorf("a session gets %d after its token was deleted, want 303 to the login", status)
	}
	if err := <-polled; lessor.CodeOf(err) != lessor.CodeUnauthenticated || time.Since(gone) > 6*time.Second {
		t.Errorf("the request ended %v after its token was deleted with %v, want 401 within 6 s", time.Since(gone), err)
	}
}

// pageOf logs in on one node. The function that it returns asks the other node for a page, and returns the status.
func pageOf(ctx context.Context, t *testing.T, here, there, token string) func() int {
	t.Helper()
	send := func(method, url, body string, cookies []*http.Cookie) *http.Response {
		t.Helper()
		r, _ := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
		for _, c := range cookies {
			r.AddCookie(c)
		}
		w, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Body.Close()
		return w
	}
	login := send(http.MethodPost, here+"/login", "token="+token, nil)
	return func() int {
		return send(http.MethodGet, there+"/jobs", "", login.Cookies()).StatusCode
	}
}
