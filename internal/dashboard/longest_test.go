package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lessor"
	"lessor/internal/sentinel"
	"lessor/internal/token"
)

// word returns a name of n characters at which a line cannot be broken.
func word(n int) string { return strings.Repeat("w", n) }

// TestLongestTextFitsEveryPage fills every field that takes text with the longest word that it takes, and opens every
// page at every width.
func TestLongestTextFitsEveryPage(t *testing.T) {
	s := start(t)
	paths := s.longest()
	b := s.tab(t, s.longestToken())
	b.openAtWidths("longest", paths)
	for _, ask := range []string{"/leases", "/schedules"} {
		b.open(ask)
		b.js(`document.querySelector("form[data-ask] button").click(), true`)
		b.wait(`document.querySelector("dialog[open]")`)
		for _, width := range widths {
			b.measure(ask+" asks", "longest", width)
		}
	}
	b.open("/tenants")
	b.js(`document.querySelector("form.inline").weight.value = "` + word(300) + `"; true`)
	b.js(`window.before = true; document.querySelector("form.inline button").click(); true`)
	b.wait(`!window.before && document.querySelector("#problem")`)
	for _, width := range widths {
		b.measure("a refusal on /tenants", "longest", width)
	}
}

// longestToken makes an admin token with the longest name.
func (s *server) longestToken() string {
	s.t.Helper()
	made, secret, err := token.Issue(token.Ask{Role: new("admin"), Name: new(word(200))}, lessor.At(time.Now()))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.scheduler.SaveToken(s.t.Context(), tester, made); err != nil {
		s.t.Fatal(err)
	}
	s.tokens.Put(made)
	return secret
}

// longest stores the longest text in every field, and returns the addresses of all pages that show it.
func (s *server) longest() []string {
	s.t.Helper()
	wide := func(typ string) lessor.Submission {
		tags := make([]string, 20)
		for i := range tags {
			tags[i] = fmt.Sprint(word(78), i+10)
		}
		return lessor.Submission{
			Type: &typ, TenantID: new(tenantA), Tags: tags, FairnessClass: new(word(80)), MaxAttempts: new(int64(50)),
			IdempotencyKey: new("k" + typ + word(79)), LockKey: new(typ[:20] + word(180)), Priority: new("background"),
			Payload: []byte(`{"` + word(2000) + `":"` + word(2000) + `"}`),
		}
	}
	typ := func(n int) string { return fmt.Sprint(n, word(119)) }
	running := s.submit(wide(typ(1)))
	held := s.lease(word(200), typ(1))
	s.beat(held, 0.999, word(lessor.MaxMessage))
	s.append(held, lessor.JournalAsk{Key: new(word(200)), Kind: new(word(120)), Data: []byte(`"` + word(4000) + `"`)})
	s.print(held, 0, word(9000)+"\n")
	blocked := wide(typ(2))
	blocked.LockKey = wide(typ(1)).LockKey
	waits := s.submit(blocked)
	asked := s.submit(wide(typ(3)))
	choices := make([]string, 20)
	for i := range choices {
		choices[i] = fmt.Sprint(word(198), i+10)
	}
	s.asks(s.lease("1"+word(199), typ(3)), word(lessor.MaxDialog), choices...)
	ask := lessor.MessageAsk{Text: new(word(lessor.MaxDialog))}
	if _, err := s.scheduler.Message(s.t.Context(), tester, running.ID, ask); err != nil {
		s.t.Fatal(err)
	}
	failing := wide(typ(4))
	failing.MaxAttempts = new(int64(1))
	failed := s.submit(failing)
	s.finish(s.lease("2"+word(199), typ(4)), "failed", word(lessor.MaxErrorText))
	done := s.submit(wide(typ(5)))
	s.finish(s.lease("3"+word(199), typ(5)), "completed", `"`+word(5000)+`"`)
	s.longestSchedule(word(120), typ(6))
	s.breakCircuit("circuit-" + word(100))
	s.longestNotes()
	dead := s.longestSentinels(typ(7))
	job := func(id lessor.JobID) string { return "/jobs/" + id.String() }
	filter := "type=" + word(120) + "&tag=" + word(80) + "&tenant_id=" + tenantA
	return []string{
		"/", "/jobs", job(running.ID), job(waits.ID), job(asked.ID), job(failed.ID), job(done.ID), "/leases",
		"/workers",
		"/leases?worker_id=" + word(200), "/schedules", "/schedules/" + word(120), "/schedules/circuit-" + word(100),
		"/runs", "/runs?job_id=" + word(200), "/tenants", "/recovery", "/audit", "/login", "/jobs?" + filter,
		"/jobs?tenant_id=" + word(300), "/jobs/bulk?action=cancel", "/jobs/bulk?action=cancel&" + filter,
		"/" + word(300), "/drain",
		job(running.ID) + "/force-cancel", "/recovery/" + dead.String() + "/mark-dead",
		"/schedules/" + word(120) + "/trigger",
		"/leases/" + held.Lease.ID.String() + "/revoke?job=" + running.ID.String(),
	}
}

// longestSchedule adds a definition with the longest texts, and the record of its changes.
func (s *server) longestSchedule(id, handler string) {
	s.t.Helper()
	minutes := "0"
	for n := 1; n <= 40; n++ { // an expression has at most 120 characters
		minutes += fmt.Sprint(",", n)
	}
	for _, lock := range []string{word(200), "w" + word(190) + "changed"} {
		caller := tester
		caller.Actor = word(200)
		_, _, err := s.scheduler.PutDefinition(s.t.Context(), caller, id, lessor.Envelope{
			JobID: &id, TenantID: new(tenantA), HandlerID: &handler, LockKey: &lock, FairnessClass: new(word(80)),
			Timezone: new("America/Argentina/ComodRivadavia"), Payload: []byte(`{"` + word(3000) + `":1}`),
			Schedule: &lessor.ScheduleAsk{Type: new(lessor.ScheduleCron), Cron: new(minutes + " * * * *")},
		})
		if err != nil {
			s.t.Fatalf("define: %v", err)
		}
	}
}

// longestNotes raises an alert, acknowledged by a long name, sets the largest tenant, and adds the worker that asks
// for the most types.
func (s *server) longestNotes() {
	s.t.Helper()
	ctx := s.t.Context()
	for _, subject := range []string{word(200), "2" + word(199)} {
		alert := lessor.Alert{Kind: lessor.AlertNoWorker, Subject: subject, Message: subject + word(800)}
		if err := s.scheduler.Raise(ctx, alert); err != nil {
			s.t.Fatal(err)
		}
	}
	caller := tester
	caller.Actor, caller.Agent = word(200), word(200)
	alerts, _, err := s.scheduler.Alerts(ctx, tester, lessor.AlertFilter{Open: true, Limit: 1})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.scheduler.Acknowledge(ctx, caller, alerts[0].ID); err != nil {
		s.t.Fatal(err)
	}
	ask := lessor.TenantAsk{Weight: lessor.SetTo(int64(10_000)), MaxConcurrency: lessor.SetTo(int64(1_000_000))}
	if _, err := s.scheduler.SetTenant(ctx, caller, tenant(tenantA), ask); err != nil {
		s.t.Fatal(err)
	}
	types := make([]string, 200)
	for i := range types {
		types[i] = fmt.Sprint(word(100), i)
	}
	_, _, err = s.scheduler.Request(ctx, caller, lessor.LeaseRequest{WorkerID: new("4" + word(199)), Types: types})
	if err != nil {
		s.t.Fatal(err)
	}
}

// longestSentinels leaves commands with the longest texts in the workspace: a live one, whose job it returns, one whose
// job is not known, and one that was marked dead.
func (s *server) longestSentinels(typ string) lessor.JobID {
	s.t.Helper()
	live, dead := s.command(typ, 5*time.Second, word(120)), s.command("8"+typ[1:], 5*time.Second, word(120))
	for _, id := range []lessor.JobID{live.ID, dead.ID, {UUID: lessor.UUID{0x01, 0x8f, 15: 7}}} {
		f, err := s.workspace.MakeFolder(id)
		if err != nil {
			s.t.Fatal(err)
		}
		err = f.WriteSentinel(sentinel.Sentinel{
			JobID: id, Status: sentinel.Running, LastHeartbeat: lessor.At(time.Now()), AgentEngine: word(120),
			SessionID: word(200), StartedAt: lessor.At(time.Now().Add(-100 * time.Hour)), Seq: 2,
		})
		f.Close()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	if err := s.recovery.Scan(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.recovery.MarkDead(s.t.Context(), tester, dead.ID); err != nil {
		s.t.Fatal(err)
	}
	return live.ID
}
