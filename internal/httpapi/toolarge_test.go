package httpapi

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestTooLargeIsAnsweredAfterTheWholeBody: a client that reads the answer only after it has sent everything gets it.
func TestTooLargeIsAnsweredAfterTheWholeBody(t *testing.T) {
	s := start(t)
	srv := httptest.NewServer(s.API)
	defer srv.Close()
	for path, limit := range map[string]int{"/jobs": 256 * kib, "/jobs/batch": bodyBatch} {
		body := strings.Repeat(" ", limit+4<<20)
		for head, sent := range map[string]string{
			fmt.Sprintf("Content-Length: %d", len(body)): body,
			"Transfer-Encoding: chunked":                 fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body),
		} {
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n%s", scheduling+path, head,
				sent); err != nil {
				t.Errorf("%s with %s: %v", path, head, err)
			} else if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil ||
				resp.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("%s with %s: %+v %v, want 413", path, head, resp, err)
			}
			conn.Close()
		}
	}
}
