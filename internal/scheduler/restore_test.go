package scheduler_test

import (
	"bytes"
	"os"
	"slices"
	"testing"
	"time"

	"lessor"
	"lessor/internal/store/sqlite"
)

// TestNewMessagesArriveAfterARestore restores a backup without the last messages. Messages that are sent afterwards
// reach a worker that has seen the lost ones, and the limit counts messages, not numbers.
func TestNewMessagesArriveAfterARestore(t *testing.T) {
	cfg := config()
	cfg.MaxMessages = 4
	inWorld(t, cfg, func(t *testing.T, w *world) {
		j := w.submit(nil)
		g := w.lease("w1", nil)
		sendMessages(w, j.ID, 1)
		var backup bytes.Buffer
		must(t, w.store.(*sqlite.Store).Backup(w.ctx, &backup))
		seen := sendMessages(w, j.ID, 2)
		if seen != 3 {
			t.Errorf("the third message has the number %d", seen)
		}
		w.halt()
		must(t, os.WriteFile(w.path, backup.Bytes(), 0o600))
		must(t, os.Remove(w.path+"-mark"))
		time.Sleep(time.Second)
		w.start()
		newMessage(w, w, g, seen)
		last := sendMessages(w, j.ID, 3)
		_, err := w.Message(w.ctx, anybody, j.ID, lessor.MessageAsk{Text: new("one too many")})
		w.wantCode(err, lessor.CodeConflict)
		w.restart(time.Second)
		a, err := w.Heartbeat(w.ctx, anybody, g.Lease.ID, lessor.Heartbeat{
			WorkerID: &g.Lease.WorkerID, MessagesSeen: new(last - 1),
		})
		if err != nil || len(a.Messages) != 1 || a.Messages[0].Seq != last {
			t.Errorf("the answer is %+v, %v, want message %d", a, err, last)
		}
		if next := sendMessages(w, j.ID, 1); next != last+1 {
			t.Errorf("after %d, without a loss, comes %d", last, next)
		}
	})
}

// TestAppendAfterARestoreIsRefused restores a backup without the last entry of a journal. A worker that knows the entry
// is refused until it has appended it again.
func TestAppendAfterARestoreIsRefused(t *testing.T) {
	inWorld(t, config(), func(t *testing.T, w *world) {
		j := w.submit(nil)
		g := w.lease("w1", nil)
		w.mustAppend(g, "a", 1)
		var backup bytes.Buffer
		must(t, w.store.(*sqlite.Store).Backup(w.ctx, &backup))
		w.mustAppend(g, "b", 2)
		w.halt()
		must(t, os.WriteFile(w.path, backup.Bytes(), 0o600))
		must(t, os.Remove(w.path+"-mark"))
		w.start()
		after := func(n int64) error {
			_, err := w.Append(w.ctx, anybody, g.Lease.ID, lessor.JournalAppend{
				WorkerID: &g.Lease.WorkerID, After: &n, Entries: []lessor.JournalAsk{{Key: new("c")}},
			})
			return err
		}
		w.wantCode(after(2), lessor.CodeConflict)
		w.mustAppend(g, "b", 2)
		must(t, after(2))
		if got := w.keys(j.ID); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("the journal has %v", got)
		}
		w.wantCode(after(-1), lessor.CodeInvalidValue)
	})
}

// TestNewMessagesArriveAfterARestoreWhileNoNodeServes: PostgreSQL goes back to a backup while all nodes are stopped, so
// none of them notices. A message that is sent afterwards reaches a worker that has seen the lost ones.
func TestNewMessagesArriveAfterARestoreWhileNoNodeServes(t *testing.T) {
	url := pool.Database(t)
	w := node(t, url, config(), nil)
	first, second := w.submit(nil), w.submit(nil)
	grants := map[lessor.JobID]lessor.Grant{}
	for range 2 {
		g := w.lease("w1", func(r *lessor.LeaseRequest) { r.TTLMS = new(int64(60_000)) })
		grants[g.Job.ID] = g
	}
	sendMessages(w, first.ID, 1)
	w.halt()
	backup := pool.Copy(t, url)
	w = node(t, url, config(), nil)
	seen := map[lessor.JobID]int64{first.ID: sendMessages(w, first.ID, 3), second.ID: sendMessages(w, second.ID, 2)}
	w.halt()
	time.Sleep(1100 * time.Millisecond) // a shorter stop does not count as an outage
	w = node(t, backup, config(), nil)
	for id, g := range grants {
		newMessage(w, w, g, seen[id])
	}
	third := w.submit(nil)
	if n := sendMessages(w, third.ID, 1); n != 1 {
		t.Errorf("the first message of a new job has the number %d", n)
	}
}
