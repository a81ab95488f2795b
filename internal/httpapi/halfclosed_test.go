package httpapi

import (
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestHalfClosedConnectionGetsNoOK: the server assumes that a caller which closed its side is gone, and may not have
// done what it asked for. The caller must not get an empty 200, which for a submission would mean that the job is
// stored.
func TestHalfClosedConnectionGetsNoOK(t *testing.T) {
	s := start(t)
	srv := httptest.NewServer(s.API)
	defer srv.Close()
	for _, sent := range []struct{ path, body string }{
		{"/jobs", `{"type":"half"}`}, {"/leases/request", `{"worker_id":"w","types":["none"],"wait_ms":30000}`},
	} {
		for range 20 { // the answer and the close race with each other
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_, err = fmt.Fprintf(conn, "POST %s%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s",
				scheduling, sent.path, len(sent.body), sent.body)
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			answer, _ := io.ReadAll(conn) // a connection that was reset is as good as one that was closed
			if len(answer) != 0 && !strings.Contains(string(answer), `"job_id"`) {
				t.Fatalf("%s is answered %q", sent.path, answer)
			}
			conn.Close()
		}
	}
}
