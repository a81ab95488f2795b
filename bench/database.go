package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"lessor/internal/pgtest"
)

// database is a throwaway PostgreSQL server. Each round uses a fresh database on it.
type database struct {
	*pgtest.Server
	admin   *pgx.Conn
	version string
	parent  int // process id of the postmaster
	made    int
}

// databaseSettings are those of a small, durable server. The WAL is large enough to keep checkpoints out of a round.
var databaseSettings = []string{
	"fsync=on", "synchronous_commit=on", "full_page_writes=on", "shared_buffers=256MB", "max_wal_size=4GB",
}

func (b *bench) startDatabase(ctx context.Context) (_ *database, err error) {
	server, err := pgtest.Start(ctx, pgtest.Options{Durable: true, Settings: databaseSettings})
	if err != nil {
		return nil, err
	}
	db := &database{Server: server}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.end())
		}
	}()
	if db.admin, err = pgx.Connect(ctx, server.URL("postgres")); err != nil {
		return nil, err
	}
	var backend int
	var fsync, sync string
	err = db.admin.QueryRow(ctx, "select pg_backend_pid(), current_setting('server_version'),"+
		" current_setting('fsync'), current_setting('synchronous_commit')").
		Scan(&backend, &db.version, &fsync, &sync)
	if err == nil && (fsync != "on" || sync != "on") {
		err = fmt.Errorf("fsync is %s and synchronous_commit is %s", fsync, sync)
	}
	if p, ok := readProcess(backend); ok {
		db.parent = p.parent
	}
	return db, err
}

// onDatabase is a benchmark that uses a database server of its own.
func onDatabase(run func(context.Context, *bench, *database) error) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) (err error) {
		db, err := b.startDatabase(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.end()) }()
		return run(ctx, b, db)
	}
}

// end stops the server and removes its data.
func (d *database) end() error {
	var err error
	if d.admin != nil {
		err = d.admin.Close(context.Background())
	}
	return errors.Join(err, d.Stop())
}

// create makes an empty database, and writes earlier changes to disk so that the next round does not pay for them.
func (d *database) create(ctx context.Context) (name string, err error) {
	d.made++
	name = "bench_" + strconv.Itoa(d.made)
	if _, err = d.admin.Exec(ctx, "create database "+name); err == nil {
		_, err = d.admin.Exec(ctx, "checkpoint")
	}
	return name, err
}

func (d *database) drop(ctx context.Context, name string) error {
	_, err := d.admin.Exec(context.WithoutCancel(ctx), "drop database "+name+" with (force)")
	return err
}

// shared is the cost of operations in this process and in the database.
type shared struct{ own, database cost }

// measure is like the function measure, and also measures the database.
func (d *database) measure(ops int, fn func() error) (s shared, err error) {
	var before time.Duration
	s.own, err = measure(ops, func() error {
		before = d.cpuTime()
		return fn()
	})
	s.database = s.own
	s.database.cpu = d.cpuTime() - before
	return s, err
}

func own(rounds []shared) (all []cost) {
	for _, r := range rounds {
		all = append(all, r.own)
	}
	return all
}

func theirs(rounds []shared) (all []cost) {
	for _, r := range rounds {
		all = append(all, r.database)
	}
	return all
}

// cpuTime is the user and system time of the server: the postmaster, its children, and the children that have ended.
// Without /proc it is 0.
func (d *database) cpuTime() time.Duration {
	postmaster, ok := readProcess(d.parent)
	if !ok {
		return 0
	}
	total := postmaster.used + postmaster.usedByEnded
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := readProcess(id); ok && p.parent == d.parent {
			total += p.used
		}
	}
	return total
}

// process is the part of /proc/ID/stat that cpuTime needs.
type process struct {
	parent            int
	used, usedByEnded time.Duration
}

// tick is the unit of times in /proc: 1/100 s on every Linux that Go supports.
const tick = 10 * time.Millisecond

// readProcess reads /proc/ID/stat; ok is false if the process has ended. Fields are counted after the name, which may
// contain any character.
func readProcess(id int) (p process, ok bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(id) + "/stat")
	if err != nil {
		return p, false
	}
	_, rest, found := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
	fields := strings.Fields(rest)
	const parent, user, endedSystem = 1, 11, 14
	if !found || len(fields) <= endedSystem {
		return p, false
	}
	var n [4]int
	for i := range n {
		if n[i], err = strconv.Atoi(fields[user+i]); err != nil {
			return p, false
		}
	}
	p.used, p.usedByEnded = time.Duration(n[0]+n[1])*tick, time.Duration(n[2]+n[3])*tick
	p.parent, err = strconv.Atoi(fields[parent])
	return p, err == nil
}
