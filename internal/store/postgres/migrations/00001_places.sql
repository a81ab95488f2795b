-- A job is where its row is: the job row never changes, narrow rows move between queue, delayed, lease and done. seq is the
-- job's place in line, which it has for life. Times are milliseconds since 1970 (0 = not set). Payloads, results and
-- checkpoints are bytes: jsonb refuses valid JSON, and one refusal fails a whole batch.
-- Nodes of two releases work side by side during an upgrade: a change of the schema is a new file with the next number that
-- only adds (expand), and what nobody reads any more goes a release later (contract). A file that was released is never edited.
--
-- +goose Up

-- A node that starts must not stop those that run: give up rather than queue behind their locks.
set local lock_timeout = '5s';

-- What makes jobs alike for a grant. Written once, never updated, never deleted. hash is over all columns: together they are
-- too wide for an index.
create table lane (
	id         bigint  generated always as identity primary key,
	hash       bytea   not null unique,
	tenant     uuid    not null,
	class      text    not null,
	priority   integer not null,
	type       text    not null,
	is_unique  boolean not null,
	units      integer not null,
	lock_key   text    not null,
	definition text    not null
);

-- Places in line are given in blocks of this size; see Seqs.
create sequence place increment by 65536 start 1;

-- What a job is. seq finds its row in the places. The payload stands last, so that the other columns are read without it.
create table job (
	id               uuid    primary key,
	lane             bigint  not null,
	seq              bigint  not null,
	tags             text    not null,
	idempotency_key  text,
	max_runtime_ms   bigint  not null,
	max_attempts     integer not null,
	backoff_first_ms bigint  not null,
	backoff_max_ms   bigint  not null,
	run_at           bigint  not null,
	tick_at          bigint  not null,
	trace_id         text    not null,
	actor            text    not null,
	created_at       bigint  not null,
	payload          bytea
);

create table idempotency (
	tenant    uuid  not null,
	key       text  not null collate "C",
	job       uuid  not null,
	body_hash bytea not null,
	primary key (tenant, key)
);

-- Queued and due.
create table queue (
	seq           bigint  primary key,
	job           uuid    not null,
	lane          bigint  not null,
	fence         bigint  not null,
	queued_at     bigint  not null,
	attempt       integer not null,
	max_attempts  integer not null,
	interruptions integer not null,
	steps         integer not null
);

-- Waiting for its time (state queued) or for a retry (failed, expired).
create table delayed (
	seq           bigint  primary key,
	job           uuid    not null,
	lane          bigint  not null,
	fence         bigint  not null,
	queued_at     bigint  not null,
	until         bigint  not null,
	attempt       integer not null,
	max_attempts  integer not null,
	interruptions integer not null,
	steps         integer not null,
	state         text    not null
);
create index delayed_until on delayed (until, seq);

-- Live leases. No index on a column that a heartbeat changes, and room on each page for new versions: heartbeats touch no
-- index (HOT). lease_lock is the second wall behind the scheduler's own count of held locks.
create table lease (
	id             uuid    primary key,
	seq            bigint  not null unique,
	job            uuid    not null,
	lane           bigint  not null,
	fence          bigint  not null,
	queued_at      bigint  not null,
	ttl_ms         bigint  not null,
	max_runtime_ms bigint  not null,
	issued_at      bigint  not null,
	expires_at     bigint  not null,
	first_beat_at  bigint  not null,
	beat_at        bigint  not null,
	cancel_at      bigint  not null,
	watch_until    bigint  not null,
	attempt        integer not null,
	max_attempts   integer not null,
	interruptions  integer not null,
	steps          integer not null,
	units          integer not null,
	reattached     boolean not null,
	tenant         uuid    not null,
	worker         text    not null collate "C",
	lock_key       text    collate "C",
	request_id     text    collate "C",
	workspace_id   text
) with (fillfactor = 40);
create unique index lease_lock on lease (tenant, lock_key) where lock_key is not null;
create index lease_request on lease (worker, request_id) where request_id is not null;

-- Attempts after which the job went on.
create table attempt (
	job           uuid    not null,
	fence         bigint  not null,
	seq           bigint  not null,
	lane          bigint  not null,
	queued_at     bigint  not null,
	granted_at    bigint  not null,
	first_beat_at bigint  not null,
	ended_at      bigint  not null,
	attempt       integer not null,
	max_attempts  integer not null,
	interruptions integer not null,
	steps         integer not null,
	lease         uuid    not null,
	worker        text    not null,
	outcome       text    not null,
	said          text    not null,
	reason        text    not null,
	actor         text    not null,
	error         text    not null,
	primary key (job, fence)
);
create index attempt_lease on attempt (lease);

-- The job has ended: also the record of its last attempt; lease is null when it ended without one.
create table done (
	seq           bigint  primary key,
	job           uuid    not null,
	lane          bigint  not null,
	fence         bigint  not null,
	queued_at     bigint  not null,
	granted_at    bigint  not null,
	first_beat_at bigint  not null,
	ended_at      bigint  not null,
	attempt       integer not null,
	max_attempts  integer not null,
	interruptions integer not null,
	steps         integer not null,
	lease         uuid,
	state         text    not null,
	worker        text    not null,
	outcome       text    not null,
	said          text    not null,
	reason        text    not null,
	actor         text    not null,
	error         text    not null,
	result        bytea
);
create index done_ended on done (ended_at, seq);
create index done_lease on done (lease) where lease is not null;

-- Entries of the record that no attempt tells.
create table note (
	id         bigint  generated always as identity primary key,
	job        uuid    not null,
	fence      bigint  not null,
	at         bigint  not null,
	queued_at  bigint  not null,
	attempt    integer not null,
	held       boolean not null,
	lease      uuid,
	from_state text    not null,
	to_state   text    not null,
	actor      text    not null,
	reason     text    not null
);
create index note_job on note (job);

-- What a job last reported; apart from lease, so that its rows keep their width.
create table report (
	job        uuid   primary key,
	at         bigint not null,
	progress   double precision,
	message    text,
	checkpoint bytea
);

create table setting (
	name  text  primary key,
	value bytea not null
);

create table token (
	id         uuid   primary key,
	hash       bytea  not null unique,
	name       text   not null,
	role       text   not null,
	tenant     uuid,
	created_at bigint not null,
	expires_at bigint not null
);

-- How far Strip has come, so that no job needs a mark of its own; one row.
create table stripped (
	id       boolean primary key check (id),
	ended_at bigint  not null,
	seq      bigint  not null
);
insert into stripped values (true, 0, 0);

-- Since when somebody serves; one row. A starting node does not touch it.
create table serving (
	id          boolean primary key check (id),
	last_beat   bigint  not null,
	since       bigint  not null,
	brake_until bigint  not null,
	lapsed_at   bigint  not null
) with (fillfactor = 10);
insert into serving values (true, 0, 0, 0, 0);

-- Each open store writes one stream of changes, numbered from 1 without gaps, one row a commit. A void row is a commit that
-- never was: its number is used up, so that the commit whose answer was lost can no longer happen.
create table stream (
	id       bigint  generated always as identity primary key,
	seen_at  bigint  not null,
	busy     integer not null default 0, -- how busy its node last said to be, and when
	rated_at bigint  not null default 0
) with (fillfactor = 50);
create table change (
	stream bigint  not null,
	n      bigint  not null,
	at     bigint  not null,
	void   boolean not null,
	data   bytea   not null,
	primary key (stream, n)
);
alter table change alter column data set storage external; -- to compress what lives for a minute costs more than it saves

-- Rows of these tables live for seconds: vacuum by count, not by share, and without pausing, or dead rows pile up at the head
-- of the indexes.
alter table queue set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
	autovacuum_analyze_scale_factor = 0.2, autovacuum_analyze_threshold = 20000);
alter table delayed set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
	autovacuum_analyze_scale_factor = 0.2, autovacuum_analyze_threshold = 20000);
alter table lease set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
	autovacuum_analyze_scale_factor = 0.2, autovacuum_analyze_threshold = 20000);
alter table change set (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0,
	autovacuum_analyze_scale_factor = 0.2, autovacuum_analyze_threshold = 20000);
alter table serving set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
alter table stream set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
