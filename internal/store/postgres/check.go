package postgres

import (
	"context"
	"fmt"
	"time"

	"lessor"
	"lessor/internal/scheduler"
	"lessor/internal/store"
	"lessor/internal/store/postgres/wire"
)

const (
	// leastVersion is the oldest server that is tested and still maintained.
	leastVersion = 130000
	// longOpen is the age at which an open transaction of any client has delayed vacuum long enough to slow down the
	// queue.
	longOpen = time.Minute
	// largeSkew is the difference from which a reader can no longer match this machine's log lines with times of the
	// store. Leases are not affected: they use the database's clock alone.
	largeSkew = 2 * time.Second
	// checkTime bounds the check.
	checkTime = 10 * time.Second
)

var (
	checkServer = wire.SQL("select current_setting('server_version'), current_setting('server_version_num')::bigint," +
		" pg_is_in_recovery(), " + clockMillis)
	checkSetting = wire.SQL("select current_setting(name) from unnest($1::text[]) as name")
	checkSchema  = wire.SQL("select coalesce(max(version_id), 0) from goose_db_version where is_applied")
	checkOpen    = wire.SQL("select coalesce(max(extract(epoch from clock_timestamp() - xact_start)), 0)::bigint," +
		" count(xact_start)" +
		" from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'")
	checkTables = wire.SQL("select relname::text, n_live_tup, n_dead_tup, pg_total_relation_size(relid)" +
		" from pg_stat_user_tables" +
		" where relname in ('queue', 'cohort', 'cohort_left', 'delayed', 'lease', 'change', 'serving')" +
		" order by relname")
)

// durability lists the settings on which the promises depend, and the values that they must not have.
var durability = []struct{ name, wrong, why string }{
	{"fsync", "off", "acknowledged changes can be lost when power fails"},
	{"full_page_writes", "off", "a power failure can damage pages"},
	{"synchronous_commit", "off", "acknowledged changes can be lost when the server dies"},
}

// Check implements scheduler.Store.
func (s *Store) Check(ctx context.Context) []scheduler.Finding {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	c, _, err := s.take(ctx)
	if err != nil {
		return []scheduler.Finding{store.Finding("connection", err, "")}
	}
	var findings []scheduler.Finding
	for _, check := range []func(*wire.Conn) ([]scheduler.Finding, error){
		checkMachine, checkDurability, checkVersion, checkAges, checkHot,
	} {
		found, bad := check(c)
		findings = append(findings, found...)
		if bad != nil {
			err = bad
			findings = append(findings, store.Finding("check", bad, ""))
			break
		}
	}
	s.giveBack(c, err)
	return findings
}

// judged is a finding that may be bad.
func judged(ok bool, name, format string, a ...any) scheduler.Finding {
	return scheduler.Finding{Name: name, OK: ok, Detail: fmt.Sprintf(format, a...)}
}

func checkMachine(c *wire.Conn) (found []scheduler.Finding, err error) {
	before := time.Now()
	err = c.Do(wire.Step{Verb: "check the server", Stmt: checkServer, Each: func(r *wire.Row) error {
		name, version, replica, now := r.Text(), r.Int(), r.Flag(), r.Instant()
		// The true difference is somewhere between those to the sending and to the answer.
		skew := max(now.Sub(lessor.At(time.Now())), min(0, now.Sub(lessor.At(before))))
		found = []scheduler.Finding{
			judged(version >= leastVersion, "postgresql version", "%s", name),
			judged(!replica, "takes writes", "in recovery: %v", replica),
			judged(skew.Abs() <= largeSkew, "database clock",
				"the database's clock differs from this machine's by about %v", skew),
		}
		return nil
	}})
	return found, err
}

func checkDurability(c *wire.Conn) (found []scheduler.Finding, err error) {
	var names wire.Rows
	for _, d := range durability {
		names.Next()
		names.Text(d.name)
	}
	err = c.Do(wire.Step{Verb: "check settings", Stmt: checkSetting, Each: func(r *wire.Row) error {
		d, value := durability[len(found)], r.Text()
		f := judged(value != d.wrong, d.name, "%s", value)
		if !f.OK {
			f.Detail += ": " + d.why
		}
		found = append(found, f)
		return nil
	}}, names.Params()...)
	return found, err
}

func checkVersion(c *wire.Conn) (found []scheduler.Finding, err error) {
	knows, err := store.NewestMigration(migrations)
	if err != nil {
		return nil, err
	}
	err = c.Do(wire.Step{Verb: "check the schema", Stmt: checkSchema, Each: func(r *wire.Row) error {
		is := r.Int()
		found = []scheduler.Finding{judged(is == knows, "schema version", "%d, and this program knows %d", is, knows)}
		return nil
	}})
	return found, err
}

func checkAges(c *wire.Conn) (found []scheduler.Finding, err error) {
	err = c.Do(wire.Step{Verb: "check transactions", Stmt: checkOpen, Each: func(r *wire.Row) error {
		oldest, n := time.Duration(r.Int())*time.Second, r.Int()
		found = []scheduler.Finding{
			judged(oldest < longOpen, "open transactions", "%d, the oldest since %v", n, oldest),
		}
		return nil
	}})
	return found, err
}

const (
	// manyDead and largeRow are the limits beyond which vacuum does not keep up with a hot table: the number of dead
	// rows, and the size of the table per live row.
	manyDead   = 500_000
	largeTable = 256 << 20
	largeRow   = 16 << 10
)

func checkHot(c *wire.Conn) (found []scheduler.Finding, err error) {
	err = c.Do(wire.Step{Verb: "check tables", Stmt: checkTables, Each: func(r *wire.Row) error {
		name, live, dead, size := r.Text(), r.Int(), r.Int(), r.Int()
		ok := dead < max(manyDead, live) && (size < largeTable || size < largeRow*max(1, live))
		found = append(found, judged(ok, "table "+name, "%d rows, %d dead, %d KiB", live, dead, size>>10))
		return nil
	}})
	return found, err
}
