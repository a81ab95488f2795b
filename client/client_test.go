package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lessor"
)

const (
	jobA   = "0196a1b2-0000-7000-8000-00000000000a"
	leaseA = "0196a1b2-0000-7000-8000-00000000001a"
	leaseB = "0196a1b2-0000-7000-8000-00000000001b"
	tokenA = "0196a1b2-0000-7000-8000-00000000002a"
	tenant = "11111111-1111-4111-8111-111111111111"
)

// server answers every request with answer and remembers what it was asked.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string // METHOD path?query body
	header http.Header
}

func serve(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.asked = append(s.asked, strings.TrimSpace(r.Method+" "+r.URL.String()+" "+string(body)))
		s.header = r.Header
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func say(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func connect(t *testing.T, servers ...string) *Client {
	t.Helper()
	c, err := New(Config{Server: strings.Join(servers, ","), Token: "secret", Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func jobID(s string) lessor.JobID {
	u, err := lessor.ParseUUID(s)
	if err != nil {
		panic(err)
	}
	return lessor.JobID{UUID: u}
}

func leaseID(s string) lessor.LeaseID { return lessor.LeaseID{UUID: jobID(s).UUID} }

func TestEachMethodAsksItsRoute(t *testing.T) {
	tenantID := lessor.TenantID{UUID: jobID(tenant).UUID}
	const base = "/api/system/scheduler"
	for _, tt := range []struct {
		name, want string
		call       func(context.Context, *Client) error
	}{
		{
			"submit", "POST " + base + `/jobs {"type":"mail","payload":{"n":1.50},"priority":"high"}`,
			func(ctx context.Context, c *Client) error {
				_, err := c.Submit(ctx, "mail", json.RawMessage(`{"n":1.50}`), &lessor.SubmitOptions{Priority: "high"})
				return err
			},
		},
		{
			"submit batch", "POST " + base + `/jobs/batch {"jobs":[{"type":"a"},{"type":"b"}]}`,
			func(ctx context.Context, c *Client) error {
				_, err := c.SubmitBatch(ctx, []lessor.Submission{{Type: new("a")}, {Type: new("b")}})
				return err
			},
		},
		{
			"submit batch, ids", "POST " + base + `/jobs/batch {"jobs":[{"type":"a"}],"view":"ids"}`,
			func(ctx context.Context, c *Client) error {
				_, err := c.SubmitBatchIDs(ctx, []lessor.Submission{{Type: new("a")}})
				return err
			},
		},
		{"job", "GET " + base + "/jobs/" + jobA, func(ctx context.Context, c *Client) error {
			_, err := c.Job(ctx, jobID(jobA))
			return err
		}},
		{"jobs", "GET " + base + "/jobs", func(ctx context.Context, c *Client) error {
			_, _, err := c.Jobs(ctx, lessor.JobFilter{})
			return err
		}},
		{"jobs filtered", "GET " + base + "/jobs?cursor=c%2F1&limit=7&state=running&tag=a+b&tenant_id=" + tenant +
			"&type=mail", func(ctx context.Context, c *Client) error {
			_, _, err := c.Jobs(ctx, lessor.JobFilter{
				State: lessor.Running, Type: "mail", Tag: "a b",
				Tenant: &tenantID, Limit: 7, Cursor: "c/1",
			})
			return err
		}},
		{"events", "GET " + base + "/jobs/" + jobA + "/events?limit=5", func(ctx context.Context, c *Client) error {
			_, _, err := c.Events(ctx, jobID(jobA), 5, "")
			return err
		}},
		{"why", "GET " + base + "/jobs/" + jobA + "/why", func(ctx context.Context, c *Client) error {
			_, err := c.Why(ctx, jobID(jobA))
			return err
		}},
		{
			"cancel", "POST " + base + "/jobs/" + jobA + `/cancel {"force":true}`,
			func(ctx context.Context, c *Client) error {
				_, err := c.Cancel(ctx, jobID(jobA), true)
				return err
			},
		},
		{"retry", "POST " + base + "/jobs/" + jobA + "/retry {}", func(ctx context.Context, c *Client) error {
			_, err := c.Retry(ctx, jobID(jobA))
			return err
		}},
		{
			"heartbeat", "POST " + base + "/leases/" + leaseA + `/heartbeat {"worker_id":"w","progress":0.5}`,
			func(ctx context.Context, c *Client) error {
				_, err := c.Heartbeat(ctx, leaseID(leaseA), lessor.Heartbeat{WorkerID: new("w"), Progress: new(0.5)})
				return err
			},
		},
		{
			"heartbeat all", "POST " + base + `/leases/heartbeat {"worker_id":"w","lease_ids":["` + leaseA + `"]}`,
			func(ctx context.Context, c *Client) error {
				_, err := c.HeartbeatAll(ctx, "w", []lessor.LeaseID{leaseID(leaseA)})
				return err
			},
		},
		{
			"complete", "POST " + base + "/leases/" + leaseA +
				`/complete {"worker_id":"w","status":"failed","error":"no","retryable":false}`,
			func(ctx context.Context, c *Client) error {
				return c.Complete(ctx, leaseID(leaseA),
					lessor.Completion{
						WorkerID: new("w"), Status: new("failed"), Error: new("no"),
						Retryable: new(false),
					})
			},
		},
		{"complete all", "POST " + base + `/leases/complete {"worker_id":"w","leases":[{"lease_id":"` + leaseA +
			`","status":"completed"}]}`, func(ctx context.Context, c *Client) error {
			_, err := c.CompleteAll(ctx, "w",
				[]lessor.LeaseCompletion{{LeaseID: new(leaseA), Status: new("completed")}})
			return err
		}},
		{
			"release", "POST " + base + "/leases/" + leaseA + `/release {"worker_id":"w","delay_ms":250}`,
			func(ctx context.Context, c *Client) error {
				return c.Release(ctx, leaseID(leaseA), lessor.Release{WorkerID: new("w"), DelayMS: new(int64(250))})
			},
		},
		{
			"revoke", "POST " + base + "/leases/" + leaseA + `/revoke {"reason":"lost"}`,
			func(ctx context.Context, c *Client) error {
				return c.Revoke(ctx, leaseID(leaseA), "lost")
			},
		},
		{"leases", "GET " + base + "/leases?limit=3&worker_id=w%261", func(ctx context.Context, c *Client) error {
			_, _, err := c.Leases(ctx, "w&1", 3, "")
			return err
		}},
		{"capacity", "GET " + base + "/capacity", func(ctx context.Context, c *Client) error {
			_, err := c.Capacity(ctx)
			return err
		}},
		{
			"set capacity", "PUT " + base + `/capacity {"total_units":50,"busy":null,"expires_in_s":2}`,
			func(ctx context.Context, c *Client) error {
				_, err := c.SetCapacity(ctx, lessor.CapacityAsk{
					TotalUnits: lessor.SetTo(int64(50)), Busy: lessor.Change[int64]{Reset: true},
					ExpiresInS: new(int64(2)),
				})
				return err
			},
		},
		{"status", "GET " + base + "/status", func(ctx context.Context, c *Client) error {
			_, err := c.Status(ctx)
			return err
		}},
		{"drain", "PUT " + base + `/drain {"draining":true}`, func(ctx context.Context, c *Client) error {
			_, err := c.SetDraining(ctx, true)
			return err
		}},
		{"workers", "GET " + base + "/workers", func(ctx context.Context, c *Client) error {
			_, err := c.Workers(ctx)
			return err
		}},
		{"create token", `POST /api/admin/tokens {"role":"worker","tenantId":"` + tenant +
			`","expiresInSeconds":60,"name":"n"}`, func(ctx context.Context, c *Client) error {
			_, err := c.CreateToken(ctx, TokenRequest{
				Role: "worker", Tenant: &tenantID, Name: "n",
				ExpiresIn: time.Minute,
			})
			return err
		}},
		{"tokens", "GET /api/admin/tokens", func(ctx context.Context, c *Client) error {
			_, err := c.Tokens(ctx)
			return err
		}},
		{"delete token", "DELETE /api/admin/tokens/" + tokenA, func(ctx context.Context, c *Client) error {
			return c.DeleteToken(ctx, lessor.TokenID{UUID: jobID(tokenA).UUID})
		}},
		{"doctor", "GET /api/admin/doctor", func(ctx context.Context, c *Client) error {
			_, err := c.Doctor(ctx)
			return err
		}},
		{"ready", "GET /health/ready", func(ctx context.Context, c *Client) error { return c.Ready(ctx) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, say(http.StatusOK, "{}"))
			if err := tt.call(t.Context(), connect(t, s.URL)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tt.want}, s.requests()); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if got := s.header.Get("Authorization"); got != "Bearer secret" {
				t.Errorf("Authorization = %q", got)
			}
		})
	}
}

func TestCallSendsTraceparentAndUserAgent(t *testing.T) {
	s := serve(t, say(http.StatusOK, "{}"))
	c, err := New(Config{Server: s.URL + "/", UserAgent: "mine/1"})
	if err != nil {
		t.Fatal(err)
	}
	const tp = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if _, err := c.Status(WithTraceparent(t.Context(), tp)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"Traceparent": tp, "User-Agent": "mine/1", "Authorization": ""} {
		if got := s.header.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
}

func TestNewRefusesWhatIsNoServer(t *testing.T) {
	for _, bad := range []string{
		":5377", "127.0.0.1", "localhost:port", "localhost:65536", "ftp://x", "http://", "http://a,", "http://a?x=1",
		"http://u:p@a", "http://a b", "/x", strings.Repeat("http://a,", 16) + "http://a",
	} {
		if _, err := New(Config{Server: bad}); err == nil {
			t.Errorf("New(%q) was accepted", bad)
		}
	}
	for _, bad := range []string{"a b", "a\nb", "é"} {
		if _, err := New(Config{Token: bad}); err == nil {
			t.Errorf("token %q was accepted", bad)
		}
	}
	c, err := New(Config{Server: " http://a/ , https://b/lessor/,c:5377,[::1]:80/"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"http://a", "https://b/lessor", "http://c:5377", "http://[::1]:80"},
		c.servers.urls); diff != "" {
		t.Error(diff)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		chunk := []byte(strings.Repeat(" ", 1<<20))
		for range 17 {
			_, _ = w.Write(chunk)
		}
	})
	_, err := connect(t, s.URL).Status(t.Context())
	if err == nil || !strings.Contains(err.Error(), "larger than 16 MiB") {
		t.Errorf("err = %v", err)
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestATryThatHangsEnds(t *testing.T) {
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	c, err := New(Config{Server: s.URL, Timeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.Retry(t.Context(), jobID(jobA))
	if u, ok := errors.AsType[*UnreachableError](err); !ok || !u.MayHaveArrived || !errors.Is(err, errTimeout) {
		t.Errorf("err = %v", err)
	}
}

func TestContextEndsACall(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	_, err := connect(t, s.URL).Status(ctx)
	if !errors.Is(err, context.Canceled) || len(s.requests()) != 1 {
		t.Errorf("err = %v after %d tries", err, len(s.requests()))
	}
}

// TestBatchReturnsIDsFromAnOlderServer has a server that refuses a field that it does not know, before it stores
// anything.
func TestBatchReturnsIDsFromAnOlderServer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "view") {
			say(http.StatusBadRequest, `{"code":"invalid_request","detail":"unknown field view"}`)(w, r)
			return
		}
		say(http.StatusCreated, `{"jobs":[{"job_id":"`+jobA+`"}]}`)(w, r)
	}))
	defer s.Close()
	ids, err := connect(t, s.URL).SubmitBatchIDs(t.Context(), []lessor.Submission{{Type: new("a")}})
	if diff := cmp.Diff([]lessor.JobID{jobID(jobA)}, ids); err != nil || diff != "" {
		t.Errorf("error %v; ids (-want +got):\n%s", err, diff)
	}
}
