package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lessor"
)

func TestEachScheduleMethodCallsItsRoute(t *testing.T) {
	tenantID := lessor.TenantID{UUID: jobID(tenant).UUID}
	at := lessor.At(time.Date(2026, 2, 6, 20, 15, 0, 0, time.UTC))
	const base, job = "/api/kernel", "/api/kernel/jobs/a%2Fb%20c"
	const id = "a/b c"
	for want, call := range map[string]func(context.Context, *Client) error{
		"PUT " + job +
			` {"jobId":"a/b c","schedule":{"type":"cron","cron":"@daily"},"handlerId":"mail",` +
			`"lockKey":"mail","payload":{"n":1.50}}`: func(ctx context.Context, c *Client) error {
			_, _, err := c.PutDefinition(ctx, lessor.Envelope{
				JobID: new(id), Schedule: &lessor.ScheduleAsk{Type: new("cron"), Cron: new("@daily")},
				HandlerID: new("mail"), LockKey: new("mail"),
				Payload: []byte(`{"n":1.50}`),
			})
			return err
		},
		"GET " + job: func(ctx context.Context, c *Client) error { _, err := c.Definition(ctx, id); return err },
		"GET " + base + "/jobs?cursor=c%2F1&limit=7&moduleId=m&tenantId=" + tenant: func(ctx context.Context,
			c *Client,
		) error {
			_, _, err := c.Definitions(ctx, lessor.DefinitionFilter{
				Tenant: &tenantID, Module: "m", Limit: 7,
				Cursor: "c/1",
			})
			return err
		},
		"DELETE " + job: func(ctx context.Context, c *Client) error { return c.DeleteDefinition(ctx, id) },
		"POST " + base + `/manifests {"moduleId":"m","jobs":[],"prune":true,"dryRun":true}`: func(ctx context.Context,
			c *Client,
		) error {
			_, err := c.Apply(ctx, lessor.Manifest{
				ModuleID: new("m"), Jobs: []lessor.Envelope{}, Prune: new(true),
				DryRun: new(true),
			})
			return err
		},
		"POST " + job + "/pause {}": func(ctx context.Context, c *Client) error {
			_, err := c.Pause(ctx, id)
			return err
		},
		"POST " + job + "/resume {}": func(ctx context.Context, c *Client) error {
			_, err := c.Resume(ctx, id)
			return err
		},
		"POST " + job + "/circuit/reset {}": func(ctx context.Context, c *Client) error {
			_, err := c.ResetCircuit(ctx, id)
			return err
		},
		"POST " + job + "/trigger {}": func(ctx context.Context, c *Client) error {
			_, err := c.Trigger(ctx, id, nil)
			return err
		},
		"POST " + job + `/backfill {"from":"2026-02-06T20:15:00.000Z",` +
			`"to":"2026-02-06T20:16:00.000Z"}`: func(ctx context.Context, c *Client) error {
			_, err := c.Backfill(ctx, id, at, at.Add(time.Minute))
			return err
		},
		"GET " + job + "/next?count=3": func(ctx context.Context, c *Client) error {
			_, err := c.NextTicks(ctx, id, 3)
			return err
		},
		"GET " + job + "/next": func(ctx context.Context, c *Client) error {
			_, err := c.NextTicks(ctx, id, 0)
			return err
		},
		"GET " + job + "/ticks?from=2026-02-06T20%3A15%3A00.000Z&limit=2": func(ctx context.Context, c *Client) error {
			_, _, err := c.Ticks(ctx, id, lessor.TickFilter{From: at, Limit: 2})
			return err
		},
		"GET " + base + "/runs/" + jobA: func(ctx context.Context, c *Client) error {
			_, err := c.Run(ctx, jobID(jobA))
			return err
		},
		"GET " + base + "/runs?jobId=a%2Fb+c&status=FAILED&tenantId=" + tenant +
			"&traceId=0af7": func(ctx context.Context, c *Client) error {
			_, _, err := c.Runs(ctx, lessor.RunFilter{
				JobID: id, Tenant: &tenantID, Status: lessor.RunFailed,
				Trace: "0af7",
			})
			return err
		},
		"GET " + base + "/errors/" + leaseA: func(ctx context.Context, c *Client) error {
			_, err := c.RunError(ctx, leaseA)
			return err
		},
		"GET " + base + "/circuits?limit=2": func(ctx context.Context, c *Client) error {
			_, _,
				err := c.Circuits(ctx, 2, "")
			return err
		},
		"GET " + base + "/locks?limit=2&tenantId=" + tenant: func(ctx context.Context, c *Client) error {
			_, _, err := c.Locks(ctx, &tenantID, 2, "")
			return err
		},
		"GET " + base + "/alerts?open=true": func(ctx context.Context, c *Client) error {
			_, _, err := c.Alerts(ctx, lessor.AlertFilter{Open: true})
			return err
		},
		"GET " + base + "/audit?actor=ann&object=definition%2Fx": func(ctx context.Context, c *Client) error {
			_, _, err := c.Audit(ctx, lessor.AuditFilter{Actor: "ann", Object: "definition/x"})
			return err
		},
		"GET " + base + "/tenants?cursor=x": func(ctx context.Context, c *Client) error {
			_, _,
				err := c.Tenants(ctx, 0, "x")
			return err
		},
		"GET " + base + "/tenants/" + tenant: func(ctx context.Context, c *Client) error {
			_, err := c.Tenant(ctx, tenantID)
			return err
		},
		"PUT " + base + "/tenants/" + tenant + ` {"weight":3}`: func(ctx context.Context, c *Client) error {
			_, err := c.SetTenant(ctx, tenantID, lessor.TenantAsk{Weight: lessor.SetTo(int64(3))})
			return err
		},
		"GET " + base + "/tenants/" + tenant + "/classes?limit=2": func(ctx context.Context, c *Client) error {
			_, _, err := c.Classes(ctx, tenantID, 2, "")
			return err
		},
		"GET " + base + "/tenants/" + tenant + "/classes/a%2Fb": func(ctx context.Context, c *Client) error {
			_, err := c.Class(ctx, tenantID, "a/b")
			return err
		},
		"PUT " + base + "/tenants/" + tenant + `/classes/batch {"paused":true}`: func(ctx context.Context,
			c *Client,
		) error {
			_, err := c.SetClass(ctx, tenantID, "batch", lessor.TenantAsk{Paused: lessor.SetTo(true)})
			return err
		},
		"GET " + base + "/handlers": func(ctx context.Context, c *Client) error {
			_, _,
				err := c.Handlers(ctx, 0, "")
			return err
		},
		"PUT " + base + `/handlers/mail {"schema":{"maximum":1.50}}`: func(ctx context.Context, c *Client) error {
			_, _, err := c.SetHandler(ctx, "mail", []byte(`{"maximum":1.50}`))
			return err
		},
	} {
		s := serve(t, say(http.StatusOK, "{}"))
		if err := call(t.Context(), connect(t, s.URL)); err != nil {
			t.Errorf("%s: %v", want, err)
		}
		if diff := cmp.Diff([]string{want}, s.requests()); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
	}
}

func TestPutReportsWhetherItIsNew(t *testing.T) {
	for status, created := range map[int]bool{http.StatusCreated: true, http.StatusOK: false} {
		s := serve(t, say(status, `{"jobId":"nightly","handlerId":"mail","priority":"low","nextTickAt":null}`))
		d, isNew, err := connect(t, s.URL).PutDefinition(t.Context(), lessor.Envelope{JobID: new("nightly")})
		if err != nil || isNew != created || d.JobID != "nightly" || d.Priority != lessor.Low {
			t.Errorf("status %d: %+v, new %v, %v", status, d, isNew, err)
		}
		h, isNew, err := connect(t, s.URL).SetHandler(t.Context(), "mail", []byte("{}"))
		if err != nil || isNew != created || h.HandlerID != "mail" {
			t.Errorf("status %d: %+v, new %v, %v", status, h, isNew, err)
		}
	}
}

func TestScheduleListsFollowCursors(t *testing.T) {
	pages := map[string]string{
		"": `{"jobs":[{"jobId":"a","priority":"normal"}],` +
			`"runs":[{"jobId":"a"}],"ticks":[{"outcome":"fired"}],"nextCursor":"c1"}`,
		"c1": `{"jobs":[],"runs":[],"ticks":[],"nextCursor":"c2"}`,
		"c2": `{"jobs":[{"jobId":"b","priority":"normal"}],` +
			`"runs":[{"jobId":"b"}],"ticks":[{"outcome":"missed"}],"nextCursor":null}`,
	}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, pages[r.URL.Query().Get("cursor")])
	})
	c := connect(t, s.URL)
	var got []string
	for d, err := range c.AllDefinitions(t.Context(), lessor.DefinitionFilter{}) {
		got = append(got, d.JobID)
		if err != nil {
			t.Fatal(err)
		}
	}
	for r, err := range c.AllRuns(t.Context(), lessor.RunFilter{}) {
		got = append(got, r.JobID)
		if err != nil {
			t.Fatal(err)
		}
	}
	for tick, err := range c.AllTicks(t.Context(), "a", lessor.TickFilter{}) {
		got = append(got, string(tick.Outcome))
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "a", "b", "fired", "missed"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestScheduleAnswerThatIsNoListIsAnError(t *testing.T) {
	s := serve(t, say(http.StatusOK, `{"jobs":{},"nextCursor":null}`))
	if _, _, err := connect(t, s.URL).Definitions(t.Context(), lessor.DefinitionFilter{}); err == nil {
		t.Error("an object passed as a list")
	}
}

func TestScheduleRefusalsCompare(t *testing.T) {
	s := serve(t, say(http.StatusNotFound, `{"code":"definition_not_found","detail":"no such definition"}`))
	if _, err := connect(t, s.URL).Trigger(t.Context(), "x", nil); !errors.Is(err, lessor.ErrDefinitionNotFound) {
		t.Errorf("%v", err)
	}
}

// TestIfMatchChangesOnlyWhatWasRead: the ETag of an answer goes back with the change.
func TestIfMatchChangesOnlyWhatWasRead(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("If-Match"); r.Method != http.MethodGet && got != `"v1"` {
			w.WriteHeader(http.StatusPreconditionFailed)
			_, _ = fmt.Fprintf(w, `{"code":"precondition_failed","detail":"it is not %s"}`, got)
			return
		}
		w.Header().Set("ETag", `"v1"`)
		_, _ = w.Write([]byte("{}"))
	}))
	defer s.Close()
	c, ctx := connect(t, s.URL), t.Context()
	d, err := c.Definition(ctx, "nightly")
	tenant, err2 := c.Tenant(ctx, lessor.TenantID{})
	class, err3 := c.Class(ctx, lessor.TenantID{}, "batch")
	if err := errors.Join(err, err2, err3); err != nil || d.ETag != `"v1"` || tenant.ETag != d.ETag ||
		class.ETag != d.ETag {
		t.Fatalf("ETags %s %s %s, %v", d.ETag, tenant.ETag, class.ETag, err)
	}
	if err := c.DeleteDefinition(WithIfMatch(ctx, d.ETag), "nightly"); err != nil {
		t.Error(err)
	}
	if err := c.DeleteDefinition(WithIfMatch(ctx, "old"), "nightly"); !errors.Is(err, lessor.ErrPreconditionFailed) {
		t.Errorf("another version: %v", err)
	}
}
