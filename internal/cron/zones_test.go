package cron

import (
	"archive/zip"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// expressions are what the oracle is asked about: every form, and every hour in which some zone changes its offset.
var expressions = []string{
	"* * * * *", "*/5 * * * *", "*/7 * * * *", "*/15 * * * *", "*/60 * * * *", "7-59/13 * * * *",
	"0 * * * *", "1 * * * *", "15 * * * *", "30 * * * *", "45 * * * *", "59 * * * *", "0,30 * * * *", "20/15 * * * *",
	"0 */2 * * *", "30 */2 * * *", "17 */3 * * *", "0 1-23/2 * * *", "0 */12 * * *",
	"* 0 * * *", "* 1 * * *", "* 2 * * *", "* 3 * * *", "* 23 * * *", "*/10 0-4 * * *", "*/30 1,2,3 * * *",
	"0 0 * * *", "1 0 * * *", "30 0 * * *", "45 0 * * *", "59 0 * * *",
	"0 1 * * *", "15 1 * * *", "30 1 * * *", "59 1 * * *",
	"0 2 * * *", "1 2 * * *", "30 2 * * *", "45 2 * * *", "59 2 * * *",
	"0 3 * * *", "1 3 * * *", "30 3 * * *", "0 4 * * *", "30 4 * * *", "5,35 2,3 * * *", "0-59 1-3 * * *",
	"0 22 * * *", "0 23 * * *", "30 23 * * *", "59 23 * * *", "0 12 * * *",
	"30 2 * * SUN", "30 2 * * 7", "0 0 * * sat", "30 1 * * 0,6", "0 3 * * MON-FRI", "*/20 1-2 * * 5-7", "0 2 * * 1/2",
	"0 2 1 * *", "30 2 */2 * *", "30 2 1-7 * SUN", "0 0 31 * *", "30 1 25-31 MAR,OCT *", "30 2 8-14 3 0",
	"0 3 13 * FRI",
	"30 2 */2 * 1-5", "0 1 * APR-OCT *", "15 2 29 2 *", "0 0 1 1 *", "30 0 1-31 */3 */2",
}

type zone struct {
	name string
	loc  *time.Location
}

// zones returns all zones that Go knows.
var zones = sync.OnceValues(func() ([]zone, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	r, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var all []zone
	for _, f := range r.File {
		if f.FileInfo().IsDir() {
			continue
		}
		data, err := f.Open()
		if err != nil {
			return nil, err
		}
		raw, err := io.ReadAll(data)
		if err != nil {
			return nil, err
		}
		loc, err := time.LoadLocationFromTZData(f.Name, raw)
		if err != nil {
			return nil, err
		}
		all = append(all, zone{f.Name, loc})
	}
	return all, nil
})

func allZones(t *testing.T) []zone {
	t.Helper()
	all, err := zones()
	if err != nil {
		t.Fatalf("read the zones of Go: %v", err)
	}
	if len(all) < 400 {
		t.Fatalf("there are only %d zones", len(all))
	}
	return all
}

// The years that the oracle proves.
var (
	proofFrom = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	proofTo   = time.Date(2041, 1, 1, 0, 0, 0, 0, time.UTC)
)

// changes returns when the offset of loc changes, and a text that two zones share only if nothing that Next can learn
// of them differs in these years.
func changes(loc *time.Location, from, to time.Time) (at []time.Time, behaviour string) {
	var b strings.Builder
	first := from.AddDate(0, -2, 0)
	for t := first.In(loc); t.Before(to.AddDate(0, 2, 0)); {
		_, offset := t.Zone()
		start, end := t.ZoneBounds()
		_, before := start.Add(-time.Second).Zone()
		if start.Before(first) { // too long ago to matter
			start, before = first, offset
		}
		fmt.Fprint(&b, start.Unix(), before, offset, ";")
		known := len(at) > 0 && at[len(at)-1].Equal(start)
		if before != offset && !known && !start.Before(from) && start.Before(to) {
			at = append(at, start)
		}
		if end.IsZero() {
			break
		}
		if t = t.Add(day); t.Before(end) { // on the last day of a leap year it is not
			t = end
		}
	}
	return at, b.String()
}

// TestOracle compares Next with the oracle in the days around every change of offset from 2020 to 2040. Zones in which
// nothing differs in these years are asked once. The race detector, for which there is nothing to find here, is shown a
// part.
func TestOracle(t *testing.T) {
	type change struct {
		zone zone
		at   time.Time
	}
	type question struct {
		expr     string
		schedule Schedule
		oracle   oracle
	}
	var all []change
	different := map[string]bool{}
	for _, z := range allZones(t) {
		at, behaviour := changes(z.loc, proofFrom, proofTo)
		if different[behaviour] {
			continue
		}
		different[behaviour] = true
		for _, at := range at {
			all = append(all, change{z, at})
		}
	}
	slow := underRace()
	if slow { // a fair part: an odd step, since every second change is of one kind
		part := all[:0]
		for i := 0; i < len(all); i += 15 {
			part = append(part, all[i])
		}
		all = part
	}
	var questions []question
	for _, expr := range expressions {
		s, err := Parse(expr, "")
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		questions = append(questions, question{expr, s, newOracle(expr)})
	}
	var ticks, differences atomic.Int64
	var asked sync.WaitGroup
	for part := range slices.Chunk(all, len(all)/4+1) {
		asked.Go(func() {
			for _, c := range part {
				// No change skips or repeats more than a day.
				from, to := c.at.Add(-27*time.Hour), c.at.Add(27*time.Hour)
				steps := walk(from, to, c.zone.loc)
				for _, q := range questions {
					want := q.oracle.fires(steps)
					ticks.Add(int64(len(want)))
					bad := firstDifference(firesOf(q.schedule, from, to, c.zone.loc), want)
					if bad != 0 && differences.Add(1) <= 20 {
						t.Errorf("%s in %s differs at %v", q.expr, c.zone.name, time.Unix(bad, 0).In(c.zone.loc))
					}
				}
			}
		})
	}
	asked.Wait()
	t.Logf("%d zones, %d of them different; %d changes of offset, %d expressions, %d ticks: %d differences",
		len(allZones(t)), len(different), len(all), len(expressions), ticks.Load(), differences.Load())
	if !slow && len(all) < 1000 || ticks.Load() < 100*int64(len(all)) {
		t.Error("that is too little to prove anything")
	}
}

// underRace reports whether the test was built with the race detector.
func underRace() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

func firesOf(s Schedule, from, to time.Time, loc *time.Location) []int64 {
	var ticks []int64
	for t := s.Next(from.Add(-time.Nanosecond), loc); t.Before(to); t = s.Next(t, loc) {
		ticks = append(ticks, t.Unix())
	}
	return ticks
}

// firstDifference returns the first tick that only one of the two has, 0 if there is none.
func firstDifference(a, b []int64) int64 {
	for i := range max(len(a), len(b)) {
		switch {
		case i == len(a):
			return b[i]
		case i == len(b):
			return a[i]
		case a[i] != b[i]:
			return min(a[i], b[i])
		}
	}
	return 0
}
