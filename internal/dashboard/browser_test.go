package dashboard

import (
	"context"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// One browser serves all tests of this package; each test has its own profile.
var (
	theBrowser = sync.OnceValues(openBrowser)
	endBrowser = func() {}
)

func TestMain(m *testing.M) {
	code := m.Run()
	endBrowser()
	os.Exit(code)
}

func openBrowser() (context.Context, error) {
	program, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		return nil, err
	}
	profile, err := os.MkdirTemp("", "lessor-chromium")
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profile),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
	)
	allocated, freed := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocated)
	endBrowser = func() {
		cancel()
		freed()
		_ = os.RemoveAll(profile)
	}
	_, err = chromedp.Run(ctx, chromedp.Navigate("about:blank"))
	return ctx, err
}

// tab is a page in the browser.
type tab struct {
	t   *testing.T
	ctx context.Context
	url string
}

// tab opens a page, logged in with this token; "" = not logged in.
func (s *server) tab(t *testing.T, secret string) *tab {
	t.Helper()
	browser, err := theBrowser()
	if err != nil {
		t.Fatalf("no browser; `make test` installs one (Debian: apt-get install chromium-headless-shell): %v", err)
	}
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	ctx, stop := context.WithTimeout(ctx, 10*time.Minute) // a loaded machine is slow
	t.Cleanup(func() { stop(); cancel() })
	b := &tab{t, ctx, s.url}
	if secret != "" {
		b.open("/login")
		b.js(`document.querySelector("#token").value = "` + secret + `";
			document.querySelector("section form").requestSubmit(); true`)
		b.wait(`location.pathname === "/"`)
	}
	return b
}

func do[T any](b *tab, a chromedp.Action[T]) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, a)
	if err != nil {
		b.t.Fatalf("browser: %v", err)
	}
	return v
}

func (b *tab) open(path string) {
	b.t.Helper()
	do(b, chromedp.Navigate(b.url+path))
}

// js runs an expression that is true or false.
func (b *tab) js(expression string) bool {
	b.t.Helper()
	return do(b, chromedp.Evaluate[bool](expression))
}

func (b *tab) text(expression string) string {
	b.t.Helper()
	return do(b, chromedp.Evaluate[string](expression))
}

// wait waits until an expression is true.
func (b *tab) wait(expression string) {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		ok, err := chromedp.Run(b.ctx,
			chromedp.Evaluate[bool](`document.readyState === "complete" && !!(`+expression+`)`))
		if err == nil && ok {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("the page never had: %s (%v)\n%s", expression, err, b.text(`document.body.innerText`))
		}
	}
}

// press clicks the button with this text and waits for the page after it.
func (b *tab) press(button string) {
	b.t.Helper()
	b.js(`window.before = true`)
	if !b.js(`(() => {
		const b = [...document.querySelectorAll("button")].find(b => b.textContent.trim() === "` + button + `");
		if (b) b.click();
		return !!b
	})()`) {
		b.t.Fatalf("there is no button %q:\n%s", button, b.text(`document.body.innerText`))
	}
	b.wait(`!window.before`)
}

// send presses the button of the form that leads to this address, and waits for the page after it.
func (b *tab) send(action string) {
	b.t.Helper()
	b.js(`window.before = true`)
	if !b.js(`(() => {
		const b = document.querySelector("form[action='` + action + `'] button");
		if (b) b.click();
		return !!b
	})()`) {
		b.t.Fatalf("there is no form for %q:\n%s", action, b.text(`document.body.innerText`))
	}
	b.wait(`!window.before`)
}

// ask presses the button of the form that leads to this address, and returns the question of the dialog that opens.
func (b *tab) ask(action string) string {
	b.t.Helper()
	if !b.js(`(() => {
		const b = document.querySelector("form[action='` + action + `'] button");
		if (b) b.focus(), b.click();
		return !!b
	})()`) {
		b.t.Fatalf("there is no form for %q:\n%s", action, b.text(`document.body.innerText`))
	}
	b.wait(`document.querySelector("dialog[open]")`)
	return b.text(`document.querySelector("dialog").innerText`)
}

// confirm says yes to the question that is asked at this address.
func (b *tab) confirm(action string) {
	b.t.Helper()
	b.ask(action)
	b.send(action + "'][method='post")
}

// listen starts to collect errors: of scripts, of the content policy, and of files that did not load. The function that
// it returns gives the errors since its last call.
func (b *tab) listen() (complaints func() []string) {
	b.t.Helper()
	next, stop := iter.Pull2(chromedp.Console(b.ctx))
	b.t.Cleanup(stop)
	return func() (all []string) {
		b.t.Helper()
		b.js(`console.info("so far") === undefined`)
		for {
			m, err, ok := next()
			switch {
			case err != nil || !ok:
				b.t.Fatalf("browser's console: %v", err)
			case m.Text == "so far":
				return all
			case m.IsException() || m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleWarning:
				all = append(all, m.String())
			}
		}
	}
}

// prefer makes the browser prefer a theme, and other features with their values.
func (b *tab) prefer(theme string, others ...string) {
	b.t.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}
	for i := 0; i+1 < len(others); i += 2 {
		features = append(features, &emulation.MediaFeature{Name: others[i], Value: others[i+1]})
	}
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
	if err != nil {
		b.t.Fatalf("browser: %v", err)
	}
}

// picture takes a screenshot of the whole page.
func (b *tab) picture(dir, name string, width int64, theme string) {
	b.t.Helper()
	do(b, chromedp.EmulateViewport(width, 900))
	b.js(`document.documentElement.dataset.theme = "` + theme + `"; true`)
	png := do(b, chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join(dir, name), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}
