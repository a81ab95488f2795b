package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
)

// begin sends the head of a submission of size bytes (-1 = chunked) and the beginning of its body over a connection of
// its own.
func (s *served) begin(size int, secret, body string) (net.Conn, *bufio.Reader) {
	s.t.Helper()
	conn, err := s.net.dial()
	if err != nil {
		s.t.Fatal(err)
	}
	length := fmt.Sprintf("Content-Length: %d", size)
	if size < 0 {
		length = "Transfer-Encoding: chunked"
	}
	go func() { // a pipe has no buffer
		_, _ = fmt.Fprintf(conn, "POST %s/jobs/batch HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n%s\r\n\r\n%s",
			scheduling, testListen, secret, length, body)
	}()
	return conn, bufio.NewReader(conn)
}

// take uses up a tenant's share of the bodies that are being read.
func take(a *API, tenant *lessor.TenantID) {
	for n := int64(1 << 20); n > 0; n /= 2 {
		for a.bodies.Enter(tenant, n) {
		}
	}
}

func TestBodyIsRefusedBeforeItIsRead(t *testing.T) {
	serve(t, func(s *served) {
		t := s.t
		take(s.API, nil)
		taken := s.bodies.Taken()
		if taken < maxBodies/2-bodyBatch || taken > maxBodies/2 {
			t.Errorf("callers without a tenant hold %d bytes of bodies, want half of all", taken)
		}
		for name, size := range map[string]int{"a body that says how long it is": 15 << 20, "one that does not": -1} {
			body := ""
			if size < 0 {
				body = fmt.Sprintf("%x\r\n%s\r\n", 100<<10, strings.Repeat(" ", 100<<10))
			}
			conn, answer := s.begin(size, s.admin, body)
			resp, err := http.ReadResponse(answer, nil)
			if err != nil || resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
				t.Errorf("%s: %v %v, want 429 with Retry-After before the body is sent", name, resp, err)
			}
			if text, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(text), "rate_limited") {
				t.Errorf("%s: the answer is %q, %v; want all of it", name, text, err)
			}
			_ = conn.Close()
			time.Sleep(time.Second) // the server lets go of it
		}
		synctest.Wait()
		if n := s.bodies.Taken(); n != taken {
			t.Errorf("%d bytes of refused bodies are still counted", n-taken)
		}
	})
}

func TestFullBodiesBlockNoOtherCaller(t *testing.T) {
	serve(t, func(s *served) {
		t := s.t
		take(s.API, nil)
		taken := s.bodies.Taken()
		batch := `{"jobs":[{"type":"x","payload":{"a":"` + strings.Repeat("x", 200<<10) + `"}}]}`
		secret := s.issue("operator", tenantA)
		resp, err := s.send(context.Background(), "POST", scheduling+"/jobs/batch", batch, with(secret))
		if err != nil || resp.StatusCode != http.StatusCreated {
			t.Fatalf("another tenant: %v %v, want 201", resp, err)
		}
		_ = resp.Body.Close()
		beat := `{"worker_id":"w","checkpoint":{"a":"` + strings.Repeat("x", 60<<10) + `"}}`
		resp, err = s.send(context.Background(), "POST", scheduling+"/leases/"+nowhere+"/heartbeat", beat,
			with(s.admin))
		if err != nil || resp.StatusCode != http.StatusNotFound {
			t.Fatalf("a heartbeat with a checkpoint: %v %v, want it to be read", resp, err)
		}
		_ = resp.Body.Close()
		synctest.Wait()
		if n := s.bodies.Taken(); n != taken {
			t.Errorf("%d bytes of bodies that were answered are still counted", n-taken)
		}
	})
}

func TestRefusedBodyIsTakenFromClientsThatSendItAll(t *testing.T) {
	serve(t, func(s *served) {
		t := s.t
		take(s.API, nil)
		resp, err := s.send(context.Background(), "POST", scheduling+"/jobs/batch", strings.Repeat(" ", 4<<20),
			with(s.admin))
		if err != nil || resp.StatusCode != http.StatusTooManyRequests {
			t.Fatalf("%v %v, want 429", resp, err)
		}
		_ = resp.Body.Close()
		time.Sleep(time.Second)
	})
}
