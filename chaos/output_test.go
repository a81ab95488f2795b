package chaos

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lessor"
	"lessor/client"
	"lessor/internal/pgtest"
)

// printScript prints lines of 100 bytes that are numbers from 0 on, a thousand at a time.
func printScript(blocks int) string {
	return fmt.Sprintf(`b=0; while [ $b -lt %d ]; do seq -f %%099.0f $((b * 1000)) $((b * 1000 + 999)); `+
		`b=$((b + 1)); sleep 0.1; done`, blocks)
}

// printed returns the bytes from start to end of what printScript prints.
func printed(start, end int64) []byte {
	var b bytes.Buffer
	for n := start / 100; n*100 < end; n++ {
		fmt.Fprintf(&b, "%099d\n", n)
	}
	return b.Bytes()[start-start/100*100:][:end-start]
}

// TestOutputSurvivesKills prints 10 MiB while the server is killed 20 times and `lessor work` 5 times. What is kept is
// byte for byte what was printed, and another node shows new output within 2 s. On SQLite, which has no other node, the
// test is smaller without LESSOR_CHAOS=full.
func TestOutputSurvivesKills(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		s := start(t, outputSettings()...)
		if os.Getenv("LESSOR_CHAOS") == "full" {
			printUnderKills(t, s, s, 105, 20, 5)
			return
		}
		printUnderKills(t, s, s, 25, 4, 1)
	})
	t.Run("postgres", func(t *testing.T) {
		env := append(outputSettings(), "LESSOR_STORE="+database(t, pgtest.Options{Durable: true}).URL("postgres"))
		printUnderKills(t, start(t, env...), start(t, env...), 105, 20, 5)
	})
}

func outputSettings() []string {
	return []string{"LESSOR_LEASE_TTL=5s", "LESSOR_CAPACITY_BUSY=0"}
}

// printUnderKills has a command print blocks of 100,000 bytes through one node, and reads them on another.
func printUnderKills(t *testing.T, victim, other *server, blocks, servers, workers int) {
	workspace := t.TempDir()
	w := &worker{t: t, args: []string{
		"work", "--type", "long", "--server", "http://" + victim.addr + ",http://" + other.addr, "--workspace",
		workspace,
		"--shell", "--", printScript(blocks),
	}}
	w.start()
	t.Cleanup(func() {
		w.kill()
		endShims(t, workspace)
	})
	c := other.client()
	id := submitLong(t, c, `{}`)
	log := filepath.Join(workspace, "jobs", id.String(), "stdout.log")
	await(t, c, id, "running", func(j lessor.Job) bool { return j.State == lessor.Running })
	kills := slices.Concat(slices.Repeat([]string{"server"}, servers), slices.Repeat([]string{"work"}, workers))
	rand.Shuffle(len(kills), func(i, j int) { kills[i], kills[j] = kills[j], kills[i] })
	for i, kill := range kills {
		time.Sleep(rand.N(200 * time.Millisecond))
		if kill == "work" {
			w.kill()
			w.start()
		} else {
			victim.kill()
			time.Sleep(rand.N(50 * time.Millisecond))
			victim.start()
		}
		if i == len(kills)/2 && victim != other {
			wantSeen(t, c, id, log)
		}
	}
	job := await(t, c, id, "ended", func(j lessor.Job) bool { return j.Final() })
	if job.State != lessor.Completed || job.Attempt != 1 {
		t.Fatalf("the job is %s after attempt %d: %v", job.State, job.Attempt, job.Error)
	}
	wantKept(t, c, id, int64(blocks)*100_000)
}

// wantSeen fails unless what a command has printed by now is seen within 2 s. A machine that is busy may be late once.
func wantSeen(t *testing.T, c *client.Client, id lessor.JobID, log string) {
	t.Helper()
	for try := 1; ; try++ {
		file, err := os.Stat(log)
		must(t, err)
		begun, size := time.Now(), int64(0)
		for size < file.Size() && time.Since(begun) < 5*time.Second {
			out, err := c.Output(t.Context(), id, lessor.OutputQuery{Offset: -1}, 0)
			must(t, err)
			size = out.Size
			time.Sleep(20 * time.Millisecond)
		}
		took := time.Since(begun)
		t.Logf("%d bytes were seen after %v", size, took)
		if took <= 2*time.Second {
			return
		}
		if try == 3 {
			t.Errorf("output was seen after %v, want 2 s", took)
			return
		}
	}
}

// wantKept fails unless the beginning and the end of the output are as they were printed.
func wantKept(t *testing.T, c *client.Client, id lessor.JobID, size int64) {
	t.Helper()
	const head, tail = 64 << 10, 1 << 20
	kept := map[int64]int64{} // ends by starts of what is there without a gap
	var start, end int64
	for out, err := range c.AllOutput(t.Context(), id, lessor.OutputQuery{}, false) {
		must(t, err)
		if !bytes.Equal(out.Data, printed(out.Offset, out.NextOffset)) {
			t.Fatalf("the bytes from %d to %d are not what was printed", out.Offset, out.NextOffset)
		}
		if out.Offset != end {
			start = out.Offset
		}
		end = out.NextOffset
		kept[start] = end
	}
	if kept[0] < min(head, size) || end != size || start > max(0, size-tail) {
		t.Errorf("of %d bytes these are kept: %v; want the first %d and the last %d", size, kept, head, tail)
	}
}
