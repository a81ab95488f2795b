package scheduler_test

import (
	"bytes"
	"os"
	"testing"
	"time"

	"lessor"
	"lessor/internal/store/sqlite"
)

// TestMessagesAfterARestore: a backup without the last messages is restored. Messages that are sent then reach a worker
// that has seen those, and the limit counts messages, not numbers.
func TestMessagesAfterARestore(t *testing.T) {
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
