package postgres

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

// TestRelationsHaveThePromisedColumns checks that the relations have the promised names and types. There may be more
// columns.
func TestRelationsHaveThePromisedColumns(t *testing.T) {
	url := pool.Database(t)
	for relation, want := range map[string]string{
		"kernel_job_definition": "job_id text, tenant_id uuid, schedule_jsonb jsonb, handler_id text, lock_key text," +
			" max_attempts integer," +
			" timeout_seconds integer, fairness_class text, is_enabled boolean, created_at timestamp with time zone," +
			" updated_at timestamp with time zone",
		"kernel_job_run": "run_id uuid, job_id text, tenant_id uuid, status text, attempts integer," +
			" started_at timestamp with time zone," +
			" ended_at timestamp with time zone, trace_id text, last_error_ref text",
		"kernel_job_lock": "lock_key text, tenant_id uuid, locked_by text, locked_until timestamp with time zone",
	} {
		var columns []string
		readAll(t, url, "select column_name, data_type from information_schema.columns"+
			" where table_name = '"+relation+"' order by ordinal_position",
			func(values [][]byte) { columns = append(columns, string(values[0])+" "+string(values[1])) })
		if got := strings.Join(columns, ", "); !strings.HasPrefix(got+",", want+",") {
			t.Errorf("%s has the columns\n%s, want them to begin with\n%s", relation, got, want)
		}
	}
}

// TestDefinitionRelationShowsBothKindsOfSchedules stores a definition with a cron schedule and one with an interval.
func TestDefinitionRelationShowsBothKindsOfSchedules(t *testing.T) {
	url := pool.Database(t)
	s := &stage{T: t, store: openAt(t, patient(url))}
	cron := &rules.Definition{
		ID: "nightly", Tenant: lessor.TenantID{UUID: uuidAt(3, 1)}, Module: "ledger",
		Schedule: lessor.Schedule{Type: lessor.ScheduleCron, Cron: "5 4 * * *"},
		Handler:  "posting", LockKey: "lock:1", Class: "batch", MaxAttempts: 3, Timeout: 4 * time.Second, Enabled: true,
		NextTick: 1_760_000_000_500, CreatedAt: 1_750_000_000_123, UpdatedAt: 1_750_000_000_456,
	}
	every := *cron
	every.ID, every.Module, every.Schedule = "often", "", lessor.Schedule{Type: lessor.ScheduleInterval, Seconds: 30}
	every.Enabled, every.Paused, every.NextTick = false, true, 0
	s.update(func(ctx context.Context, tx scheduler.Tx) error {
		return tx.SaveDefinitions(ctx, []*rules.Definition{cron, &every})
	})
	var got []string
	readAll(t, url, "set time zone 'UTC'; select k::text from kernel_job_definition k order by job_id",
		func(values [][]byte) { got = append(got, string(values[0])) })
	want := []string{
		`(nightly,03000000-0000-0000-0000-000000000001,"{""cron"": ""5 4 * * *"", ""type"": ""cron""}",` +
			`posting,lock:1,3,4,batch,t,` +
			`"2025-06-15 15:06:40.123+00","2025-06-15 15:06:40.456+00",f,ledger,"2025-10-09 08:53:20.5+00")`,
		`(often,03000000-0000-0000-0000-000000000001,"{""type"": ""interval"", ""seconds"": 30}",` +
			`posting,lock:1,3,4,batch,f,` +
			`"2025-06-15 15:06:40.123+00","2025-06-15 15:06:40.456+00",t,,)`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("kernel_job_definition (-want +got):\n%s", d)
	}
}

// TestLockRelationAgreesWithTheRules compares locked_until with rules.Effective in every case: a plain lease, one that
// is watched, one that only the floor keeps alive, and those whose heartbeat came before the clock stepped back.
func TestLockRelationAgreesWithTheRules(t *testing.T) {
	url := pool.Database(t)
	s := &stage{T: t, store: openAt(t, patient(url))}
	if _, err := s.store.Serve(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	for _, edit := range []func(*rules.Held){
		func(*rules.Held) {},
		func(h *rules.Held) { h.WatchUntil = h.ExpiresAt.Add(time.Hour) },
		func(h *rules.Held) { h.ExpiresAt, h.TTL = h.IssuedAt-1, time.Second },
		func(h *rules.Held) { h.BeatAt, h.ExpiresAt = h.IssuedAt.Add(time.Hour), h.IssuedAt.Add(time.Hour) },
		func(h *rules.Held) {
			h.BeatAt, h.ExpiresAt = h.IssuedAt.Add(1800*time.Millisecond), h.IssuedAt.Add(time.Hour)
		},
	} {
		h := s.grant(s.job("nightly"), true)
		edit(h)
		s.update(func(ctx context.Context, tx scheduler.Tx) error { return tx.SaveLeases(ctx, []*rules.Held{h}) })
	}
	s.grant(s.job("", func(spec *rules.Spec) { spec.Lane.LockKey = "" }), true)
	got, want := map[string]lessor.Instant{}, map[string]lessor.Instant{}
	name := func(tenant, key, worker, run string) string {
		return strings.Join([]string{tenant, key, worker, run}, " ")
	}
	readAll(t, url, "select tenant_id, lock_key, locked_by, run_id, "+
		"round(extract(epoch from locked_until) * 1000)::bigint from kernel_job_lock",
		func(values [][]byte) {
			until, err := strconv.ParseInt(string(values[4]), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			got[name(string(values[0]), string(values[1]), string(values[2]),
				string(values[3]))] = lessor.Instant(until)
		})
	if err := s.store.View(t.Context(), func(v scheduler.View) error {
		held, err := v.LockList(t.Context(), scheduler.LockQuery{Limit: 100})
		for _, h := range held {
			want[name(h.Tenant.String(), h.LockKey, h.Worker, h.Turn.Job.String())] = rules.Effective(h.Held, v.Now(),
				v.Serving())
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" || len(got) != 5 {
		t.Errorf("kernel_job_lock has %d rows, want 5 that agree with the rules (-rules +relation):\n%s", len(got), d)
	}
}
