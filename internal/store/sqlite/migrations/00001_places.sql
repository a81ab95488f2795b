-- A job is where its row is: the job row never changes, narrow rows move between queue, delayed, lease and done. All are keyed
-- by seq, the job's place in line, which it has for life: an integer is the cheapest key there is, and no job is in one
-- place twice. Only a lease is keyed by the order of grants, so that grants write at one end of the table.
-- Times are milliseconds since 1970 (0 = not set), ids are 16 bytes. A change of the schema is a new file with the
-- next number; a file that was released is never edited.
--
-- +goose Up

-- What makes jobs alike for a grant. Written once, never updated.
create table lane (
	id         integer primary key,
	tenant     blob    not null,
	class      text    not null,
	priority   integer not null,
	type       text    not null,
	is_unique  integer not null,
	units      integer not null,
	lock_key   text    not null default '',
	definition text    not null default '',
	unique (tenant, class, priority, type, is_unique, units, lock_key, definition)
) strict;

-- What a job is. The payload stands last, so that the other columns are read without it.
create table job (
	seq              integer primary key,
	id               blob    not null unique,
	lane             integer not null,
	tags             text    not null,
	idempotency_key  text,
	max_runtime_ms   integer not null,
	max_attempts     integer not null,
	backoff_first_ms integer not null,
	backoff_max_ms   integer not null,
	run_at           integer not null,
	tick_at          integer not null,
	trace_id         text    not null,
	actor            text    not null,
	created_at       integer not null,
	payload          blob
) strict;

create table idempotency (
	tenant    blob not null,
	key       text not null,
	job       blob not null,
	body_hash blob not null,
	primary key (tenant, key)
) without rowid, strict;

-- Queued and due, but for rows that a grant has left behind: see gone.
create table queue (
	seq           integer primary key,
	job           blob    not null,
	lane          integer not null,
	attempt       integer not null,
	max_attempts  integer not null,
	interruptions integer not null,
	fence         integer not null,
	steps         integer not null,
	queued_at     integer not null
) strict;

-- Which rows of queue are left over from grants: a log, in the order of n, of seqs that left the queue and, below zero, of those
-- that came back. The rows are deleted later, many at a time in the order of their keys, and then the log up to there.
create table gone (
	n    integer primary key,
	seqs blob    not null
) strict;

-- Waiting for its time (state queued) or for a retry (failed, expired).
create table delayed (
	seq           integer primary key,
	job           blob    not null,
	lane          integer not null,
	attempt       integer not null,
	max_attempts  integer not null,
	interruptions integer not null,
	fence         integer not null,
	steps         integer not null,
	queued_at     integer not null,
	until         integer not null,
	state         text    not null
) strict;
create index delayed_until on delayed (until);

-- Live leases, as they were granted; n rises with the grants. There is no index by id or seq: a grant writes at the end of
-- this table alone, and what is live is also in memory. lease_lock is the second wall behind the scheduler's own count of
-- held locks.
create table lease (
	n              integer primary key,
	id             blob    not null,
	job            blob    not null,
	lane           integer not null,
	seq            integer not null,
	attempt        integer not null,
	max_attempts   integer not null,
	interruptions  integer not null,
	fence          integer not null,
	steps          integer not null,
	queued_at      integer not null,
	tenant         blob    not null,
	lock_key       text,
	units          integer not null,
	worker         text    not null,
	request_id     text,
	workspace_id   text,
	max_runtime_ms integer not null,
	issued_at      integer not null,
	granted_ttl_ms integer not null
) strict;
create unique index lease_lock on lease (tenant, lock_key) where lock_key is not null;

-- What heartbeats, cancels and watchers changed in a lease, narrow because it is written at every heartbeat; without a row the
-- lease is as it was granted. No index on expires_at: it changes each time.
create table beat (
	n             integer primary key,
	expires_at    integer not null,
	first_beat_at integer not null,
	beat_at       integer not null,
	ttl_ms        integer not null,
	cancel_at     integer not null,
	watch_until   integer not null,
	reattached    integer not null
) strict;

-- Attempts after which the job went on.
create table attempt (
	job           blob    not null,
	lane          integer not null,
	seq           integer not null,
	attempt       integer not null,
	max_attempts  integer not null,
	interruptions integer not null,
	fence         integer not null,
	steps         integer not null,
	queued_at     integer not null,
	lease         blob    not null,
	worker        text    not null,
	granted_at    integer not null,
	first_beat_at integer not null,
	ended_at      integer not null,
	outcome       text    not null,
	said          text    not null,
	reason        text    not null,
	actor         text    not null,
	error         text    not null,
	primary key (job, fence)
) without rowid, strict;
create index attempt_lease on attempt (lease);

-- The job has ended: also the record of its last attempt; lease is null when it ended without one.
create table done (
	seq           integer primary key,
	job           blob    not null,
	lane          integer not null,
	attempt       integer not null,
	max_attempts  integer not null,
	interruptions integer not null,
	fence         integer not null,
	steps         integer not null,
	queued_at     integer not null,
	state         text    not null,
	lease         blob,
	worker        text    not null,
	granted_at    integer not null,
	first_beat_at integer not null,
	ended_at      integer not null,
	outcome       text    not null,
	said          text    not null,
	reason        text    not null,
	actor         text    not null,
	error         text    not null,
	result        blob
) strict;
create index done_ended on done (ended_at);
create index done_lease on done (lease) where lease is not null;

-- Entries of the record that no attempt tells.
create table note (
	id         integer primary key,
	job        blob    not null,
	fence      integer not null,
	held       integer not null,
	at         integer not null,
	from_state text    not null,
	to_state   text    not null,
	actor      text    not null,
	reason     text    not null,
	lease      blob,
	attempt    integer not null,
	queued_at  integer not null
) strict;
create index note_job on note (job);

-- What a job last reported; apart from lease, so that its rows keep their width.
create table report (
	job        blob    primary key,
	progress   real,
	message    text,
	checkpoint blob,
	at         integer not null
) without rowid, strict;

create table setting (
	name  text primary key,
	value blob not null
) without rowid, strict;

create table token (
	id         blob    primary key,
	hash       blob    not null unique,
	name       text    not null,
	role       text    not null,
	tenant     blob,
	created_at integer not null,
	expires_at integer not null
) without rowid, strict;
