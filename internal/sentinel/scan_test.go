package sentinel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lessor"
)

func job(n int) lessor.JobID {
	id := mustJob("0196a1b2-0000-7000-8000-000000000000")
	binary.BigEndian.PutUint32(id.UUID[12:], uint32(n))
	return id
}

// fill writes sentinels without syncing them: the scan does not care, and 50,000 syncs take minutes.
func fill(t testing.TB, w *Workspace, from, to int, seq int64) {
	t.Helper()
	for n := from; n < to; n++ {
		dir := filepath.Join(w.Path(), "jobs", job(n).String())
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
		s := fmt.Sprintf(`{"jobId":%q,"status":"running","lastHeartbeat":"2025-10-15T10:30:45.123Z",`+
			`"workspacePath":%q,"sessionId":"abc123def456","agentEngine":"claude-code",`+
			`"startedAt":"2025-10-15T10:00:00.000Z","seq":%d,"fence":7,"lastProgress":null}`,
			job(n), dir, seq)
		name := filepath.Join(dir, ".sentinel.json")
		if err := os.WriteFile(name+"x", []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+"x", name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestScanSeesWhatChanged(t *testing.T) {
	w := open(t)
	scanner := w.Sentinels()
	scan := func() map[lessor.JobID]int64 {
		t.Helper()
		found, err := scanner.Scan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seqs := map[lessor.JobID]int64{}
		for _, one := range found {
			if one.Err != nil {
				t.Fatalf("%s: %v", one.Folder, one.Err)
			}
			seqs[one.JobID] = one.Record.Seq
		}
		if len(seqs) != len(found) {
			t.Fatalf("%d found, %d of them different", len(found), len(seqs))
		}
		return seqs
	}
	if got := scan(); len(got) != 0 {
		t.Fatalf("an empty workspace has %v", got)
	}
	fill(t, w, 0, 2000, 1)
	if got := scan(); len(got) != 2000 || got[job(7)] != 1 {
		t.Fatalf("%d found, job 7 at %d", len(got), got[job(7)])
	}
	fill(t, w, 0, 10, 2)
	if err := errors.Join(w.Remove(job(20)),
		os.Remove(filepath.Join(w.Path(), "jobs", job(21).String(), ".sentinel.json"))); err != nil {
		t.Fatal(err)
	}
	got := scan()
	if len(got) != 1998 || got[job(9)] != 2 || got[job(10)] != 1 {
		t.Fatalf("%d found, job 9 at %d, job 10 at %d", len(got), got[job(9)], got[job(10)])
	}
	// The same length and the same modification time: the change time gives it away.
	name := filepath.Join(w.Path(), "jobs", job(10).String(), ".sentinel.json")
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	forged := strings.Replace(string(raw), `"seq":1`, `"seq":5`, 1)
	if err := errors.Join(os.WriteFile(name, []byte(forged), 0o600),
		os.Chtimes(name, time.Time{}, info.ModTime())); err != nil {
		t.Fatal(err)
	}
	if got := scan(); got[job(10)] != 5 {
		t.Errorf("a change under the old modification time was not seen: job 10 at %d", got[job(10)])
	}
}

func TestLeftoversAreRemoved(t *testing.T) {
	w := open(t)
	f := makeFolder(t, w, jobA)
	if err := f.WriteSentinel(pulse(jobA, 1)); err != nil {
		t.Fatal(err)
	}
	keep := []string{"..sentinel.json", "..data", "result.json"}
	for _, name := range append([]string{"..sentinel.json1234", "..exit.json77"}, keep...) {
		if err := os.WriteFile(f.Join(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Tidy(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := append([]string{".sentinel.json"}, keep...); !slices.Equal(slices.Sorted(slices.Values(want)), names) {
		t.Errorf("left are %q, want %q", names, want)
	}
	gone := filepath.Join(w.Path(), "jobs", ".gone-"+jobB.String()+"-X")
	if err := errors.Join(os.Mkdir(gone, 0o700), w.Tidy()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(gone); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a removal is still there: %v", err)
	}
	if _, err := f.Sentinel(); err != nil {
		t.Errorf("the sentinel itself: %v", err)
	}
}

// BenchmarkScan scans with a tenth changed since the last scan, and with all changed.
func BenchmarkScan(b *testing.B) {
	for _, n := range []int{10_000, 50_000} {
		for _, part := range []int{10, 1} {
			changed := n / part
			b.Run(fmt.Sprintf("%d/%d changed", n, changed), func(b *testing.B) {
				w := open(b)
				fill(b, w, 0, n, 1)
				scanner := w.Sentinels()
				if _, err := scanner.Scan(b.Context()); err != nil {
					b.Fatal(err)
				}
				seq, used := int64(1), time.Duration(0)
				for b.Loop() {
					b.StopTimer()
					seq++
					fill(b, w, 0, changed, seq)
					before := cpu()
					b.StartTimer()
					found, err := scanner.Scan(b.Context())
					if err != nil || len(found) != n {
						b.Fatalf("%d found, %v", len(found), err)
					}
					used += cpu() - before
				}
				b.ReportMetric(float64(used.Milliseconds())/float64(b.N), "cpu-ms/op")
			})
		}
	}
}

// cpu is the processor time used so far: on a busy machine it says more than the clock.
func cpu() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkWriteSentinel reports the median, and the share of writes that failed, with 16 shims writing at once: far
// more often than shims do.
func BenchmarkWriteSentinel(b *testing.B) {
	w := open(b)
	var mu sync.Mutex
	var took []time.Duration
	var shims, failed int
	b.SetParallelism(max(1, 16/runtime.GOMAXPROCS(0)))
	b.RunParallel(func(pb *testing.PB) {
		mu.Lock()
		shims++
		id := job(shims)
		mu.Unlock()
		f, err := w.MakeFolder(id)
		if err != nil {
			b.Error(err)
			return
		}
		defer f.Close()
		for seq := int64(1); pb.Next(); seq++ {
			start := time.Now()
			err := f.WriteSentinel(pulse(id, seq))
			d := time.Since(start)
			mu.Lock()
			took = append(took, d)
			if err != nil {
				failed++
			}
			mu.Unlock()
		}
	})
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-median")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "µs-p99")
	b.ReportMetric(float64(failed)/float64(len(took)), "failed/op")
}

// BenchmarkWriteSentinelAlone is what one shim pays for a pulse.
func BenchmarkWriteSentinelAlone(b *testing.B) {
	f := makeFolder(b, open(b), jobA)
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		if err := f.WriteSentinel(pulse(jobA, int64(len(took)))); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-median")
}
