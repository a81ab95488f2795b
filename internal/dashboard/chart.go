package dashboard

import (
	"fmt"
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
	Width, Height int
	Top           int // the value at the upper edge
	Lines         []line
	Empty         bool
}

// line is one series of a chart.
type line struct {
	Name  string
	Class string // CSS class for its colour
	Now   int    // its last value, or its sum
	Note  string // says which
	Path  string // SVG path
}

// throughput draws the jobs that were submitted and that ended, by minute.
func throughput(hour []slot) chart {
	perMinute := int(time.Minute / slotTime)
	series := make([][]int, 3)
	for i := 0; i+perMinute <= len(hour); i += perMinute {
		var sums [3]int
		for _, s := range hour[i : i+perMinute] {
			sums[0] += s.submitted
			sums[1] += s.completed
			sums[2] += s.otherwise
		}
		for k := range series {
			series[k] = append(series[k], sums[k])
		}
	}
	lines := []line{
		{Name: "submitted", Class: "submitted"},
		{Name: "completed", Class: "completed"},
		{Name: "failed or expired", Class: "failed"},
	}
	for k := range lines {
		for _, v := range series[k] {
			lines[k].Now += v
		}
		lines[k].Note = "in the last hour"
	}
	return draw(lines, series)
}

// depths draws the number of waiting jobs.
func depths(hour []slot, now int) chart {
	values := make([]int, len(hour))
	for i, s := range hour {
		values[i] = s.depth
		if !s.sampled && i > 0 {
			values[i] = values[i-1]
		}
	}
	values[len(values)-1] = now
	return draw([]line{{Name: "queued and due", Class: "queued", Now: now, Note: "now"}}, [][]int{values})
}

func draw(lines []line, series [][]int) chart {
	c := chart{Width: chartWidth, Height: chartHeight, Top: 1, Lines: lines, Empty: true}
	for _, values := range series {
		for _, v := range values {
			c.Top = max(c.Top, v)
			c.Empty = c.Empty && v == 0
		}
	}
	for k, values := range series {
		var b strings.Builder
		for i, v := range values {
			verb := 'L'
			if i == 0 {
				verb = 'M'
			}
			x := float64(i) * chartWidth / float64(max(1, len(values)-1))
			y := chartHeight - 2 - float64(v)/float64(c.Top)*(chartHeight-8)
			fmt.Fprintf(&b, "%c%.1f %.1f", verb, x, y)
		}
		lines[k].Path = b.String()
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
