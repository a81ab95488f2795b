package executor

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lessor"
)

// printed returns the output that the server has of a job's last attempt, for one stream.
func (b *bench) printed(id lessor.JobID, stream string) string {
	b.t.Helper()
	var all []byte
	for out, err := range b.client.AllOutput(b.t.Context(), id, lessor.OutputQuery{Stream: stream}, false) {
		if err != nil {
			b.t.Fatal(err)
		}
		all = append(all, out.Data...)
	}
	return string(all)
}

func TestOutputIsSeenWhileTheCommandRuns(t *testing.T) {
	b := newBench(t, 10*time.Second)
	b.work(nil, `echo begun; echo trouble >&2; while [ ! -e go ]; do sleep 0.05; done; seq 1 20000; echo end >&2`)
	id := b.submit(`{}`)
	await(t, "the first output", func() bool { return b.printed(id, lessor.Stdout) == "begun\n" })
	await(t, "the first errors", func() bool { return b.printed(id, lessor.Stderr) == "trouble\n" })
	if err := os.WriteFile(b.file(id, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.awaitState(id, lessor.Completed)
	if got := b.printed(id, lessor.Stdout); got != b.read(id, stdoutName) || !strings.HasSuffix(got, "20000\n") {
		t.Errorf("the server has %d bytes of the output, want the %d of the file", len(got),
			len(b.read(id, stdoutName)))
	}
	if got := b.printed(id, lessor.Stderr); got != "trouble\nend\n" {
		t.Errorf("the server has the errors %q, want both lines", got)
	}
}

func TestOutputOfAFailedCommandIsSent(t *testing.T) {
	b := newBench(t, 10*time.Second)
	b.work(nil, `printf 'last words'; exit 3`)
	id := b.submit(`{}`)
	b.awaitJob(id, "failed once", func(j lessor.Job) bool { return j.Attempt > 1 || !j.RetryAt.IsZero() })
	out, err := b.client.Output(t.Context(), id, lessor.OutputQuery{Attempt: 1}, 0)
	if err != nil || string(out.Data) != "last words" || !out.Ended {
		t.Errorf("the output of attempt 1 is %q, ended %v (%v); want all of it, ended", out.Data, out.Ended, err)
	}
}

// TestOutputOfAKilledShimIsSent runs a command that kills its shim when its last output is in the file. The Runner
// sends the rest of the output, or the next Runner does.
func TestOutputOfAKilledShimIsSent(t *testing.T) {
	for name, again := range map[string]bool{"by its Runner": false, "by the next Runner": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 5*time.Minute)
			script := `echo first; echo > begun; while [ ! -e go ]; do sleep 0.02; done
				seq 1 20000; echo trouble >&2;
					until grep -q 20000 stdout.log && grep -q trouble stderr.log; do sleep 0.01; done
				kill -9 $PPID`
			stop := b.work(nil, script)
			id := b.submit(`{}`)
			b.awaitFile(id, "begun")
			if again {
				stop()
			}
			if err := os.WriteFile(b.file(id, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if again {
				f := b.folder(id)
				await(t, "the shim to be gone", func() bool { held, err := f.Locked(); return !held && err == nil })
				b.work(nil, script)
			}
			await(t, "all of the output", func() bool {
				return b.printed(id, lessor.Stdout) == b.read(id, stdoutName) &&
					b.printed(id, lessor.Stderr) == "trouble\n"
			})
		})
	}
}

// TestOffsetsStayValidInATrimmedFile reads a stream after each write to a file that loses its older half whenever it is
// full.
func TestOffsetsStayValidInATrimmedFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	o := &output{file: f, limit: 400, seen: func() {}, warn: func(err error) { t.Error(err) }}
	var all []byte
	for n := range 500 {
		part := bytes.Repeat([]byte{byte(n)}, n%37)
		if n == 300 {
			part = bytes.Repeat([]byte("large"), 200)
		}
		_, _ = o.Write(part)
		all = append(all, part...)
		if o.Size() != int64(len(all)) {
			t.Fatalf("write %d: the stream has %d bytes, want %d", n, o.Size(), len(all))
		}
		for _, from := range []int64{0, o.first, o.Size() - 100, o.Size() - 1, o.Size()} {
			buf := make([]byte, 150)
			from = max(from, 0)
			start, got := o.Read(from, buf)
			if start < from || !bytes.Equal(buf[:got], all[start:start+int64(got)]) {
				t.Fatalf("write %d: %d bytes from %d (asked for %d) differ from the output", n, got, start, from)
			}
			if from < o.Size() && got == 0 {
				t.Fatalf("write %d: no bytes from %d of %d", n, from, o.Size())
			}
		}
		if n > 100 && o.Size()-o.first < 100 && n != 300 {
			t.Fatalf("write %d: %d bytes are in the file, want at least 100", n, o.Size()-o.first)
		}
	}
}
