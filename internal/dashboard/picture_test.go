package dashboard

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestNothingIsCutOff looks at every page at the width of a phone, a laptop and a wide screen, in both themes. LESSOR_SCREENSHOTS names a
// folder to keep the pictures in.
func TestNothingIsCutOff(t *testing.T) {
	w := start(t).world()
	b := w.tab(t, w.admin)
	dir := os.Getenv("LESSOR_SCREENSHOTS")
	if dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i, path := range w.paths() {
		b.open(path)
		for _, width := range []int64{390, 1280, 1920} {
			do(b, chromedp.EmulateViewport(width, 900))
			if wide := do(b, chromedp.Evaluate[int](`document.documentElement.scrollWidth - document.documentElement.clientWidth`)); wide > 0 {
				t.Errorf("%s at %d px is %d px too wide", path, width, wide)
			}
			if dir == "" {
				continue
			}
			name := strings.Trim(strings.NewReplacer("/", "-", "?", "-", "=", "-", "&", "-").Replace(path), "-")
			for _, theme := range []string{"light", "dark"} {
				b.picture(dir, fmt.Sprintf("%02d-%.20s-%d-%s.png", i, name, width, theme), width, theme)
			}
		}
	}
}

// TestPicturesOfTheDocs makes the pictures of docs/observability.md, when LESSOR_DOCS_PICTURES is set.
func TestPicturesOfTheDocs(t *testing.T) {
	if os.Getenv("LESSOR_DOCS_PICTURES") == "" {
		t.Skip("LESSOR_DOCS_PICTURES is not set")
	}
	w := start(t).world()
	w.hour()
	b := w.tab(t, w.admin)
	for _, p := range []struct {
		path, name, theme string
		width             int64
	}{
		{"/", "overview.png", "light", 1280},
		{"/", "overview-dark.png", "dark", 1280},
		{"/jobs/" + w.running.ID.String(), "job.png", "light", 1280},
	} {
		b.open(p.path)
		b.picture("../../docs/screenshots", p.name, p.width, p.theme)
	}
}

// hour makes up an hour of work for the charts.
func (w world) hour() {
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	for i := range slots {
		s := w.history.at(time.Now().Add(-time.Duration(i) * slotTime))
		wave := math.Sin(float64(i) / 9)
		s.submitted, s.completed, s.otherwise = 60+int(40*wave), 58+int(30*math.Sin(float64(i-4)/9)), 3+i%4
		s.depth, s.sampled = 30+int(25*wave), true
	}
}
