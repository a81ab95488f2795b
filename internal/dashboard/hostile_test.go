package dashboard

import (
	"strings"
	"testing"

	"lessor"
)

// hostile is text that an attacker might store to take over a visitor's browser.
var hostile = []string{
	`<script>window.owned=1</script>`, `"><img src=x onerror="window.owned=1">`, `{{.}}{{template "layout" .}}`,
	"\u202egnp.exe\u202c", `javascript:window.owned=1`,
	`' onfocus='window.owned=1' autofocus='`, `</code></td><svg onload=window.owned=1>`,
}

// TestStoredTextIsOnlyText stores hostile text in every field that takes text, and opens every page in a browser.
func TestStoredTextIsOnlyText(t *testing.T) {
	w := start(t).world()
	w.poison()
	b := w.tab(t, w.admin)
	jobs, _, err := w.scheduler.Jobs(t.Context(), tester, lessor.JobFilter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	paths := w.paths()
	for _, job := range jobs {
		paths = append(paths, "/jobs/"+job.ID.String())
	}
	for _, text := range hostile {
		paths = append(paths, "/jobs?tag="+escape(text)+"&type="+escape(text), "/runs?job_id="+escape(text),
			"/leases?worker_id="+escape(text), "/audit?actor="+escape(text), "/login?next="+escape(text),
			"/jobs/bulk?action=cancel&type="+escape(text), "/?outcome="+escape(text), "/jobs?state="+escape(text))
	}
	shown := ""
	for _, path := range paths {
		b.open(path)
		if b.js(`!!window.owned || !!document.querySelector("main script, main img, main [onerror], main [onfocus], " +
			"main [onload], a[href^='javascript:']")`) {
			t.Errorf("%s runs what was stored", path)
		}
		shown += b.text(`document.body.innerText`)
	}
	if strings.ContainsAny(shown, "\u202e\u202c") {
		t.Error("text turns the direction of what follows")
	}
	marks := strings.NewReplacer("\u202e", `\u202e`, "\u202c", `\u202c`)
	for _, text := range hostile {
		if !strings.Contains(shown, marks.Replace(text)) {
			t.Errorf("%q is shown nowhere, so nothing was tested", text)
		}
	}
}

func escape(s string) string {
	return strings.NewReplacer(
		"%", "%25", "&", "%26", "+", "%2B", "#", "%23", " ", "%20", `"`, "%22", "<", "%3C", ">", "%3E",
	).Replace(s)
}

// poison stores hostile text in every field that takes text.
func (w world) poison() {
	for i, text := range hostile {
		typ := "poison." + string(rune('a'+i))
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
		w.submit(lessor.Submission{
			Type: new(text), Tags: []string{text}, Payload: []byte(`{"a":` + quoted + `}`), IdempotencyKey: new(text),
			LockKey: new("lock " + text), FairnessClass: new(typ),
		})
		w.submit(lessor.Submission{Type: &typ, MaxAttempts: new(int64(1))})
		g := w.lease(text, typ)
		w.beat(g, 0.5, text)
		w.append(g, lessor.JournalAsk{Key: new(text), Kind: new(text), Data: []byte(quoted)})
		w.print(g, 0, text)
		if i%2 == 0 {
			w.finish(g, "failed", text)
		}
		alert := lessor.Alert{Kind: lessor.AlertNoWorker, Subject: text, Message: text}
		if err := w.scheduler.Raise(w.t.Context(), alert); err != nil {
			w.t.Fatalf("raise: %v", err)
		}
		caller := tester
		caller.Actor, caller.Agent = text, text
		ask := lessor.TenantAsk{Weight: lessor.SetTo(int64(i + 1))}
		if _, err := w.scheduler.SetTenant(w.t.Context(), caller, tenant(tenantA), ask); err != nil {
			w.t.Fatalf("set tenant: %v", err)
		}
	}
}

// TestDeeplyNestedPayloadIsCutAndOffered looks at a job whose indented payload would take hundreds of megabytes.
func TestDeeplyNestedPayloadIsCutAndOffered(t *testing.T) {
	s := start(t)
	deep := `{"a":` + strings.Repeat("[", 980) + "[]" + strings.Repeat(",[]", 70_000) + strings.Repeat("]", 980) + `}`
	job := s.submit(lessor.Submission{Type: new("deep"), Payload: []byte(deep)})
	admin := s.as(s.admin)
	_, page := admin.get("/jobs/" + job.ID.String())
	if len(page) > 2*maxText {
		t.Errorf("the page has %d bytes, want at most %d of the payload", len(page), maxText)
	}
	download := "/jobs/" + job.ID.String() + "/download/payload"
	has(t, page, "This is the beginning", `href="`+download+`" download`)
	if _, body := admin.get(download); body != deep {
		t.Errorf("%d bytes are downloaded, want the payload as it was sent with %d", len(body), len(deep))
	}
}
