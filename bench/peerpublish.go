package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// publish prints the comparison as Markdown, and writes it and a chart into the folder of -write.
func (b *bench) publish(ctx context.Context, all []*peerFigures, jobs, rounds int, postgres string) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "# Lessor beside its peers\n\n"+
		"Made by `make bench-peers` on %s: %s, %d cores, %s/%s, PostgreSQL %s.\n",
		time.Now().Format(time.DateOnly), runtime.Version(), runtime.GOMAXPROCS(0),
		runtime.GOOS, runtime.GOARCH, postgres)
	fmt.Fprintf(&text,
		"%d jobs a round, %d rounds in turns, medians; the range is that of the whole life. CPU is that of\n"+
			"all processes: client, server and database. Latency: from just before a job is sent until a\n"+
			"worker that waits has it, at %d jobs a second.\n\n", jobs, rounds, latencyRate)
	writePeerTable(&text, all)
	writePeerGoals(&text, all)
	writePeerSettings(ctx, &text, all)
	if _, err := b.out.Write(text.Bytes()); err != nil {
		return err
	}
	b.verdict(true, "peers are compared, not judged")
	if b.write == "" {
		return nil
	}
	if err := os.MkdirAll(b.write, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(b.write, "peers.md"), text.Bytes(), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.write, "peers.svg"), chart(all), 0o600)
}

func writePeerTable(w *bytes.Buffer, all []*peerFigures) {
	fmt.Fprintln(w, "| | enqueue/s | work/s | whole life/s | × River | range |"+
		" CPU µs/job | heartbeats/s | CPU µs/heartbeat |"+
		" p50 ms | p99 ms |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	for _, f := range all {
		if f.missing != "" {
			fmt.Fprintf(w, "| %s | missing: %s | | | | | | | | | |\n", f.name, f.missing)
			continue
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", f.name,
			figure(f.enqueue, cost.rate), figure(f.work, cost.rate), figure(f.life, cost.rate), timesRiver(f, all),
			spread(f.life), figure(f.life, cost.cpuUS), figure(f.beats, cost.rate), figure(f.beats, cost.cpuUS),
			millis(f.p50), millis(f.p99))
	}
}

// timesRiver is how many times as many jobs a peer does as River on PostgreSQL.
func timesRiver(f *peerFigures, all []*peerFigures) string {
	for _, r := range all {
		if r.name == riverPeer && len(r.life) > 0 && len(f.life) > 0 {
			return fmt.Sprintf("%.2f", median(f.life, cost.rate)/median(r.life, cost.rate))
		}
	}
	return "–"
}

func figure(rounds []cost, by func(cost) float64) string {
	if len(rounds) == 0 {
		return "–"
	}
	m := median(rounds, by)
	if m >= 100 {
		return thousands(int(m))
	}
	return fmt.Sprintf("%.1f", m)
}

func spread(rounds []cost) string {
	if len(rounds) == 0 {
		return "–"
	}
	byRate := func(a, b cost) int { return cmp.Compare(a.rate(), b.rate()) }
	return thousands(int(slices.MinFunc(rounds, byRate).rate())) + "–" +
		thousands(int(slices.MaxFunc(rounds, byRate).rate()))
}

// thousands writes 12345 as 12,345.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return thousands(n/1000) + fmt.Sprintf(",%03d", n%1000)
}

func millis(ms float64) string {
	if ms == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", ms)
}

// peerModules are those whose versions matter.
var peerModules = []string{
	"github.com/riverqueue/river", "github.com/hibiken/asynq", "github.com/nats-io/nats-server/v2",
	"github.com/beanstalkd/go-beanstalk", "go.etcd.io/etcd/server/v3", "modernc.org/sqlite",
}

func writePeerSettings(ctx context.Context, w *bytes.Buffer, all []*peerFigures) {
	fmt.Fprintln(w, "\n| | settings |\n|---|---|")
	for _, f := range all {
		if f.missing == "" {
			fmt.Fprintf(w, "| %s | %s; parallelism %d, the fastest of %v |\n", f.name, f.about, f.width, f.widths)
		}
	}
	info, _ := debug.ReadBuildInfo() // the program was built with modules
	var versions []string
	for _, dep := range info.Deps {
		if slices.Contains(peerModules, dep.Path) {
			versions = append(versions, dep.Path+" "+dep.Version)
		}
	}
	for _, f := range all {
		if f.version != nil && f.missing == "" {
			text, err := exec.CommandContext(ctx, f.version[0], f.version[1:]...).CombinedOutput()
			if line := strings.TrimSpace(string(text)); err == nil && !slices.Contains(versions, line) {
				versions = append(versions, line)
			}
		}
	}
	fmt.Fprintf(w, "\nVersions: %s.\n", strings.Join(versions, ",\n"))
}

// chart draws the rates of a whole life as bars.
func chart(all []*peerFigures) []byte {
	const left, width, line = 240, 460, 26
	rows := slices.DeleteFunc(slices.Clone(all), func(f *peerFigures) bool { return len(f.life) == 0 })
	rate := func(f *peerFigures) float64 { return median(f.life, cost.rate) }
	slices.SortStableFunc(rows, func(a, b *peerFigures) int { return cmp.Compare(rate(b), rate(a)) })
	var svg bytes.Buffer
	fmt.Fprintf(&svg,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`,
		left+width+80, line*len(rows)+40)
	svg.WriteString("\n<title>Jobs per second, from enqueue to completion</title>\n" +
		`<rect width="100%" height="100%" fill="#fff"/>` +
		`<text x="8" y="20">Jobs per second, from enqueue to completion</text>` + "\n")
	for i, f := range rows {
		fill := "#9aa5b1"
		if strings.HasPrefix(f.name, "Lessor") {
			fill = "#2563eb"
		}
		y, length := 34+i*line, max(2, int(rate(f)/rate(rows[0])*width))
		fmt.Fprintf(&svg, `<text x="%d" y="%d" text-anchor="end">%s</text>`, left-8, y+14, html.EscapeString(f.name))
		fmt.Fprintf(&svg, `<rect x="%d" y="%d" width="%d" height="18" fill="%s"/>`, left, y, length, fill)
		fmt.Fprintf(&svg, `<text x="%d" y="%d">%s</text>`+"\n", left+length+6, y+14, thousands(int(rate(f))))
	}
	svg.WriteString("</svg>\n")
	return svg.Bytes()
}
