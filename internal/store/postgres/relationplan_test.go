package postgres

import (
	"fmt"
	"strings"
	"testing"
)

// TestRunRelationIsReadByIndexes reads the plans of the queries for which kernel_job_run is made, with a million runs:
// by tenant and status, and by job_id with the newest first. Every branch must find its rows by an index.
func TestRunRelationIsReadByIndexes(t *testing.T) {
	url := pool.Database(t)
	fillRuns(t, url, 1_000_000)
	const tenant = "00000000-0000-0000-0000-000000000007"
	for _, status := range []string{"CLAIMED", "RUNNING", "RETRYING", "SUCCESS", "FAILED", "CIRCUIT_OPEN"} {
		plan := explainText(t, url, fmt.Sprintf("select * from kernel_job_run where tenant_id = '%s' and status = '%s'",
			tenant, status))
		wantIndexes(t, status+" of a tenant", plan, 1)
	}
	for name, job := range map[string]string{
		"definition": "d0007",
		"plain job":  "01990000-0000-7000-8000-000000000008",
	} {
		for _, since := range []string{"", " and started_at > to_timestamp(900)"} {
			plan := explainText(t, url, "select * from kernel_job_run"+
				" where job_id = '"+job+"'"+since+" order by started_at desc limit 20")
			wantIndexes(t, name+since, plan, 13)
			if bounds := strings.Count(plan, "AND (to_timestamp"); since != "" && bounds < 3 {
				t.Errorf("%s: started_at limits %d scans of an index, want at least 3, of done and tick:\n%s", name,
					bounds, plan)
			}
		}
	}
	plan := explainText(t, url, "select * from kernel_job_lock where tenant_id = '"+tenant+"' and lock_key = 'k'")
	wantIndexes(t, "a lock", plan, 1)
}

// wantIndexes fails the test if a plan reads a growing table without a condition on an index, or has too few scans.
func wantIndexes(t *testing.T, what, plan string, least int) {
	t.Helper()
	lines := strings.Split(plan, "\n")
	bound := 0
	for i, line := range lines {
		switch {
		case strings.Contains(line, "Seq Scan") && !strings.Contains(line, " on serving"):
			t.Errorf("%s: the plan reads a whole table:\n%s", what, plan)
			return
		case strings.Contains(line, "Index Scan"), strings.Contains(line, "Index Only Scan"):
			if i+1 == len(lines) || !strings.Contains(lines[i+1], "Index Cond:") {
				t.Errorf("%s: the plan reads a whole index, at %q:\n%s", what, strings.TrimSpace(line), plan)
				return
			}
			bound++
		}
	}
	if bound < least {
		t.Errorf("%s: %d scans of an index, want at least %d:\n%s", what, bound, least, plan)
	}
}

func explainText(t *testing.T, url, text string) string {
	t.Helper()
	var lines []string
	readAll(t, url, "explain (costs off) "+text, func(values [][]byte) { lines = append(lines, string(values[0])) })
	return strings.Join(lines, "\n")
}

// fillRuns stores n runs of a thousand tenants, half of them of 500 definitions. It drops the indexes and makes them
// again after the rows, which takes a fraction of the time.
func fillRuns(t *testing.T, url string, n int) {
	t.Helper()
	var indexes []string
	readAll(t, url, `select indexname, indexdef from pg_indexes i where tablename in ('job', 'done', 'lease', 'delayed',
		'queue', 'tick', 'attempt')
		and not exists (select 1 from pg_constraint where conname = i.indexname)`, func(values [][]byte) {
		indexes = append(indexes, "drop index "+string(values[0]), string(values[1]))
	})
	for i := 0; i < len(indexes); i += 2 {
		readAll(t, url, indexes[i], nil)
	}
	const (
		id    = `('01990000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid`
		owner = `('00000000-0000-0000-0000-' || lpad((i / 40 %% 1000)::text, 12, '0'))::uuid`
		name  = `'d' || lpad((i / 40 %% 500)::text, 4, '0')`
		whose = owner + `, case i %% 2 when 1 then ` + name + ` end`
		lane  = `case i %% 2 when 0 then 1 + i / 40 %% 1000 else 1001 + i / 40 %% 500 end`
		turn  = id + `, ` + lane + `, i, 1, 5, 0, i, 3, i`
	)
	//nolint:dupword // columns of one value
	for _, text := range []string{
		`insert into lane (id, hash, ` + laneColumns + `) overriding system value
			select 1 + i, ('h' || i)::bytea, ('00000000-0000-0000-0000-' || lpad((i %% 1000)::text, 12, '0'))::uuid,
			'c', 1, 't', false, 1, '', case when i < 1000 then '' else 'd' || lpad((i - 1000)::text, 4,
			'0') end
			from generate_series(0, 1499) i where %[1]d > 0`,
		`insert into job (` + jobColumns + `)
			select ` + id + `, ` + lane + `, i, '[]', null, 0, 5, 1000, 1000, 0, 0, '', 'a', i, null
			from generate_series(1, %[1]d) i`,
		`insert into lease (` + leaseColumns + `, definition)
			select ` + id + `, ` + turn + `, ` + owner + `, 'k' || i, 1, 'w', null, null, 0, i, null, null, false, i,
			i / 2 %% 20, i, 60000, 0, 0, 0, 0, 0, case i %% 2 when 1 then ` + name + ` end
			from generate_series(1, %[1]d) i where i / 2 %% 20 < 2`,
		`insert into delayed (` + waitingColumns + `, tenant, definition)
			select ` + turn + `, i, 'failed', ` + whose + ` from generate_series(1, %[1]d) i where i / 2 %% 20 = 2`,
		`insert into queue (` + turnColumns + `, tenant, definition)
			select ` + id + `, ` + lane + `, i, 1, 5, 0, i * (4 - i / 2 %% 20), 3, i, ` + whose + `
			from generate_series(1, %[1]d) i where i / 2 %% 20 in (3, 4)`,
		`insert into done (` + endColumns + `, started_at)
			select ` + turn + `, ` + id + `, 'w', i, i, i, 'completed', '', 'completed', 'w', '', null,
			case i / 2 %% 20 when 5 then 'failed' else 'completed' end, null, ` + whose + `, i
			from generate_series(1, %[1]d) i where i / 2 %% 20 >= 5`,
		`insert into tick (` + tickColumns + `)
			select ` + name + `, i, ` + owner + `, case i %% 10 when 1 then 'circuitOpen' else 'fired' end, '',
			` + id + `, 0, 0, 1
			from generate_series(1, %[1]d, 5) i`,
		`insert into attempt (` + attemptColumns + `)
			select ` + turn + `, ` + id + `, 'w', i, i, i, 'failed', '', 'failed', 'w', '', null
			from generate_series(1, %[1]d, 10) i`,
	} {
		readAll(t, url, fmt.Sprintf(text, n), nil)
	}
	for i := 1; i < len(indexes); i += 2 {
		readAll(t, url, indexes[i], nil)
	}
	readAll(t, url, "analyze", nil)
}
