package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlowBodyIsAnswered sends a batch of jobs for longer than an answer may take. Its jobs are committed, so its
// sender must get the answer: a repetition would make them again.
func TestSlowBodyIsAnswered(t *testing.T) {
	serve(t, func(s *served) {
		body := strings.NewReader(`{"jobs":[{"type":"x"}]}` + strings.Repeat(" ", 40))
		conn, answer := s.begin(body.Len(), s.admin, "")
		synctest.Wait() // the head has been sent
		for body.Len() > 0 {
			time.Sleep(time.Second)
			if _, err := io.CopyN(conn, body, 1); err != nil {
				s.t.Fatalf("the server takes no more with %d bytes to go: %v", body.Len(), err)
			}
		}
		resp, err := http.ReadResponse(answer, nil)
		if err != nil || resp.StatusCode != http.StatusCreated {
			s.t.Errorf("the answer is %v, %v; want 201", resp, err)
		}
		_ = conn.Close()
	})
}

// TestSlowReaderLosesItsStreamWithItsToken: there are always records that a slow reader has not taken yet.
func TestSlowReaderLosesItsStreamWithItsToken(t *testing.T) {
	serve(t, func(s *served) {
		role := decoded(s.t, s.call("POST", administration+"/tokens", `{"role":"viewer"}`, with(s.admin)))
		next := s.follow(s.t.Context(), with(role["token"].(string)))
		next() // the greeting
		const jobs = 1000
		s.api("POST", "/jobs/batch", `{"jobs":[`+strings.Repeat(`{"type":"x"},`, jobs-1)+`{"type":"x"}]}`, 201)
		next()
		if w := s.call("DELETE", administration+"/tokens/"+role["id"].(string), "", with(s.admin)); w.Code != 204 {
			s.t.Fatalf("delete: %d", w.Code)
		}
		synctest.Wait()
		got := 1
		for next() != "end" {
			got++
		}
		if got > jobs/2 { // what was on its way is sent
			s.t.Errorf("the reader gets %d of %d records although its token is deleted", got, jobs)
		}
		if n := s.streams.Taken(); n != 0 {
			s.t.Errorf("%d streams are open, want none", n)
		}
	})
}

// TestBodiesOfWaitingRequestsAreCounted: what a turn has sent is kept while its request waits.
func TestBodiesOfWaitingRequestsAreCounted(t *testing.T) {
	serve(t, func(s *served) {
		end := fmt.Sprintf(`{"lease_id":%q,"status":"completed","result":{"a":%q}}`,
			nowhere, strings.Repeat("x", 200<<10))
		turn := func(ends int) string {
			return `{"worker_id":"w","complete":[` + strings.Repeat(end+",", ends-1) + end +
				`],"request":{"types":["none"],"wait_ms":30000}}`
		}
		waiting := s.later("POST", scheduling+"/leases/turn", turn(50))
		synctest.Wait()
		if n := s.bodies.Taken(); n < 10_000_000 {
			s.t.Errorf("a turn of 10 MB waits, and %d bytes are counted", n)
		}
		take(s.API, nil)
		light := `{"worker_id":"w","types":["none"],"wait_ms":30000}` + strings.Repeat(" ", 20<<10)
		if a := <-s.later("POST", scheduling+"/leases/request", light); a.status != http.StatusTooManyRequests {
			s.t.Errorf("beyond its share a request that waits is answered %d %s, want 429", a.status, a.body)
		}
		taken := s.bodies.Taken()
		if a := <-waiting; a.status != http.StatusOK {
			s.t.Errorf("the turn is answered %d %.200s", a.status, a.body)
		}
		synctest.Wait()
		if n := taken - s.bodies.Taken(); n < 10_000_000 {
			s.t.Errorf("%d bytes are given back after the answer, want all", n)
		}
	})
}

// TestStoppedTurnSaysThatItsEndsMayHaveHappened: a server stops while a turn waits for work whose completions are
// committed.
func TestStoppedTurnSaysThatItsEndsMayHaveHappened(t *testing.T) {
	serve(t, func(s *served) {
		s.api("POST", "/jobs", `{"type":"x"}`, 201)
		granted := s.api("POST", "/leases/request", `{"worker_id":"w","types":["x"]}`, 200)
		lease := granted["lease"].(map[string]any)["lease_id"]
		turn := s.later("POST", scheduling+"/leases/turn", fmt.Sprintf(`{"worker_id":"w",
			"complete":[{"lease_id":%q,"status":"completed"}],"request":{"types":["x"],"wait_ms":30000}}`, lease))
		alone := s.later("POST", scheduling+"/leases/turn",
			`{"worker_id":"w","request":{"types":["x"],"wait_ms":30000}}`)
		time.Sleep(time.Second)
		if err := s.halt(); err != nil {
			s.t.Errorf("Serve: %v", err)
		}
		if a := <-turn; a.status != 503 || !strings.Contains(a.body, `"outcome":"unknown"`) {
			s.t.Errorf("the turn that completed a job is answered %d %s %v; want 503 unknown", a.status, a.body, a.err)
		}
		if a := <-alone; a.status != 503 || strings.Contains(a.body, "unknown") {
			s.t.Errorf("the turn that only waits is answered %d %s %v; want 503", a.status, a.body, a.err)
		}
	})
}
