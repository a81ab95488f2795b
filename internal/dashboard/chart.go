package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The size of a chart in its own units; the page scales it.
const (
	chartWidth  = 600
	chartHeight = 120
)

// chart is a picture of the last hour.
type chart struct {
	Name          string
	Width, Height int
	Top           int // the value at the upper edge
	Lines         []line
	Gaps          []gap
	Empty         bool
}

// line is one series of a chart.
type line struct {
	Name  string
	Class string // CSS class for its colour
	Now   int    // its last value, or its sum
	Note  string // says which
	Path  string // SVG path
	Area  string // SVG path around what is below it
}

// gap is a time of which this node knows nothing, because it did not run or could not read the store.
type gap struct {
	X, W float64
}

// throughput draws the jobs that were submitted and that ended, by minute.
func throughput(hour []slot) chart {
	const perMinute = int(time.Minute / slotTime)
	lines := []line{
		{Name: "submitted", Class: "submitted"},
		{Name: "completed", Class: "completed"},
		{Name: "failed or expired", Class: "failed"},
	}
	series := make([][]int, len(lines))
	var known []bool
	for minute := range slices.Chunk(hour, perMinute) {
		var sums [3]int
		for _, s := range minute {
			sums[0] += s.submitted
			sums[1] += s.completed
			sums[2] += s.otherwise
		}
		known = append(known, slices.ContainsFunc(minute, func(s slot) bool { return s.sampled }))
		for k := range lines {
			series[k] = append(series[k], sums[k])
			lines[k].Now += sums[k]
			lines[k].Note = since(hour)
		}
	}
	return draw("throughput", lines, series, known)
}

// since says what time the sums of an hour are of.
func since(hour []slot) string {
	first := slices.IndexFunc(hour, func(s slot) bool { return s.sampled })
	if first == 0 {
		return "in the last hour"
	}
	return "since " + hour[max(0, first)].at().Format("15:04")
}

// depths draws the number of waiting jobs.
func depths(hour []slot, now int) chart {
	values, known := make([]int, len(hour)), make([]bool, len(hour))
	for i, s := range hour {
		values[i], known[i] = s.depth, s.sampled
	}
	values[len(values)-1], known[len(known)-1] = now, true
	lines := []line{{Name: "queued and due", Class: "queued", Now: now, Note: "now"}}
	return draw("depth", lines, [][]int{values}, known)
}

func draw(name string, lines []line, series [][]int, known []bool) chart {
	c := chart{Name: name, Width: chartWidth, Height: chartHeight, Top: 1, Lines: lines, Empty: true}
	for _, values := range series {
		c.Top = max(c.Top, slices.Max(values))
		c.Empty = c.Empty && slices.Max(values) == 0
	}
	x := func(i int) float64 { return float64(i) * chartWidth / float64(max(1, len(known)-1)) }
	for k, values := range series {
		var path, area strings.Builder
		for i, v := range values {
			if !known[i] {
				continue
			}
			at := fmt.Sprintf("%.1f %.1f", x(i), chartHeight-2-float64(v)/float64(c.Top)*(chartHeight-8))
			if i == 0 || !known[i-1] {
				fmt.Fprintf(&path, "M%s", at)
				fmt.Fprintf(&area, "M%.1f %dL%s", x(i), chartHeight, at)
			} else {
				fmt.Fprintf(&path, "L%s", at)
				fmt.Fprintf(&area, "L%s", at)
			}
			if i == len(values)-1 || !known[i+1] {
				fmt.Fprintf(&area, "V%dZ", chartHeight)
			}
		}
		lines[k].Path, lines[k].Area = path.String(), area.String()
	}
	for i := 0; i < len(known); i++ {
		from := i
		for i < len(known) && !known[i] {
			i++
		}
		if i > from {
			left, right := x(max(0, from-1)), x(min(i, len(known)-1))
			c.Gaps = append(c.Gaps, gap{left, right - left})
		}
	}
	return c
}

// bar is a percentage as a picture.
type bar struct {
	Percent float64
	Class   string
	Label   string
}

// share returns n of whole in per cent, at most 100.
func share(n, whole int) float64 {
	if whole <= 0 {
		return 0
	}
	return min(100, 100*float64(n)/float64(whole))
}
