package worker_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/lessortest"
	"lessor/node"
	"lessor/worker"
)

// TestJournalIsWholeAfterARestore restores a backup while a job runs: the server loses entries that it has
// acknowledged. The attempt appends them again, in order, before its next one.
func TestJournalIsWholeAfterARestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := t.TempDir()
		s := testServer{lessortest.Start(t, node.Config{Data: data}), t, &journal{}}
		w := s.worker(worker.Config{})
		worker.Handle(w, "pack", func(ctx context.Context, job *worker.Job[order]) (any, error) {
			for n := range 5 {
				time.Sleep(20 * time.Second)
				if err := job.Journal().Append(ctx, fmt.Sprint("step-", n), "step", n); err != nil {
					return nil, err
				}
			}
			return nil, nil
		})
		s.Run(w)
		id := s.Submit("pack", order{})
		time.Sleep(30 * time.Second)
		var backup bytes.Buffer
		if _, err := s.Admin().Backup(t.Context(), &backup); err != nil {
			t.Fatal(err)
		}
		time.Sleep(40 * time.Second)
		if got := s.Journal(id); len(got) != 3 {
			t.Fatalf("before the restore the journal has %d entries, want 3", len(got))
		}
		go func() {
			time.Sleep(time.Second) // the server is down
			restore(t, filepath.Join(data, "lessor.db"), backup.Bytes())
		}()
		s.Restart(2 * time.Second)
		if got := s.Journal(id); len(got) != 1 {
			t.Fatalf("after the restore the journal has %d entries, want 1", len(got))
		}
		if job := s.WaitFor(id, lessor.Completed); job.Attempt != 1 {
			t.Errorf("the job was completed by attempt %d, want the first", job.Attempt)
		}
		journal := s.Journal(id)
		for n, e := range journal {
			if e.Key != fmt.Sprint("step-", n) || e.N != n+1 {
				t.Errorf("entry %d of the journal is %d, %s", n+1, e.N, e.Key)
			}
		}
		if len(journal) != 5 {
			t.Errorf("the journal has %d entries, want 5", len(journal))
		}
	})
}

// restore puts a backup in the place of the database of a server that is stopped.
func restore(t *testing.T, path string, backup []byte) {
	t.Helper()
	if err := os.WriteFile(path, backup, 0o600); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"-wal", "-shm", "-mark"} {
		if err := os.Remove(path + name); err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
	}
}
