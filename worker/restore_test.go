package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lessor"
	"lessor/lessortest"
	"lessor/node"
	"lessor/worker"
)

// TestJournalIsWholeAfterARestore restores a backup while a job runs: the server loses entries that it has
// acknowledged. The attempt appends them again, step by step, before its next one, although all goroutines of a step
// append at once and each of them finds the loss.
func TestJournalIsWholeAfterARestore(t *testing.T) {
	const steps, callers = 5, 4
	synctest.Test(t, func(t *testing.T) {
		data := t.TempDir()
		s := testServer{lessortest.Start(t, node.Config{Data: data}), t, &journal{}}
		w := s.worker(worker.Config{})
		worker.Handle(w, "pack", func(ctx context.Context, job *worker.Job[order]) (any, error) {
			var errs [steps * callers]error
			for step := range steps {
				time.Sleep(20 * time.Second)
				var all sync.WaitGroup
				for caller := range callers {
					all.Go(func() {
						n := step*callers + caller
						errs[n] = job.Journal().Append(ctx, fmt.Sprint("entry-", n), "step", step)
					})
				}
				all.Wait()
			}
			return nil, errors.Join(errs[:]...)
		})
		s.Run(w)
		id := s.Submit("pack", order{})
		time.Sleep(30 * time.Second)
		var backup bytes.Buffer
		if _, err := s.Admin().Backup(t.Context(), &backup); err != nil {
			t.Fatal(err)
		}
		time.Sleep(40 * time.Second)
		if got := s.Journal(id); len(got) != 3*callers {
			t.Fatalf("before the restore the journal has %d entries, want %d", len(got), 3*callers)
		}
		go func() {
			time.Sleep(time.Second) // the server is down
			restore(t, filepath.Join(data, "lessor.db"), backup.Bytes())
		}()
		s.Restart(2 * time.Second)
		if got := s.Journal(id); len(got) != callers {
			t.Fatalf("after the restore the journal has %d entries, want %d", len(got), callers)
		}
		if job := s.WaitFor(id, lessor.Completed); job.Attempt != 1 {
			t.Errorf("the job was completed by attempt %d, want the first", job.Attempt)
		}
		journal := s.Journal(id)
		for n, e := range journal {
			if string(e.Data) != strconv.Itoa(n/callers) || e.N != n+1 {
				t.Errorf("entry %d of the journal is %d, %s, of step %s", n+1, e.N, e.Key, e.Data)
			}
		}
		if len(journal) != steps*callers {
			t.Errorf("the journal has %d entries, want %d", len(journal), steps*callers)
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
