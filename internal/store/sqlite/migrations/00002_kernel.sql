-- Definitions and what belongs to them. As in 00001, times are milliseconds since 1970 (0 = not set), and ids of jobs, leases and
-- tenants are 16 bytes; a definition's id is the name that its owner gave it.
--
-- +goose Up

-- When the job was first granted (0 = never): granted_at, unless attempts came before.
alter table done add column started_at integer not null default 0;
update done set started_at = coalesce((select granted_at from attempt where job = done.job order by fence limit 1), granted_at)
	where fence > 0;

-- A trace id that was made up is the job's own id, and needs no index.
create index job_trace on job (trace_id, id) where trace_id <> hex(id) collate nocase;

-- The payload stands last, so that the other columns are read without it.
create table definition (
	id                 text    not null primary key,
	tenant             blob    not null,
	module             text    not null,
	schedule_type      text    not null,
	cron               text    not null,
	every_s            integer not null,
	zone               text    not null,
	handler            text    not null,
	lock_key           text    not null,
	class              text    not null,
	priority           integer not null,
	units              integer not null,
	max_attempts       integer not null,
	timeout_ms         integer not null,
	backoff_first_ms   integer not null,
	backoff_max_ms     integer not null,
	enabled            integer not null,
	overlap            text    not null,
	catch_up           text    not null,
	catch_up_window_ms integer not null,
	jitter_ms          integer not null,
	failures           integer not null,
	cooldown_ms        integer not null,
	paused             integer not null,
	anchor             integer not null,
	next_tick          integer not null,
	due_at             integer not null,
	created_at         integer not null,
	updated_at         integer not null,
	payload            blob
) strict;
create index definition_due on definition (due_at, id) where due_at > 0;
create index definition_tenant on definition (tenant, id);
create index definition_module on definition (module, id) where module <> '';
create index definition_held on definition (id) where paused or not enabled;

-- The jobs of a definition; open until they are in done.
create table definition_job (
	definition text    not null,
	job        blob    not null,
	open       integer not null,
	primary key (definition, job)
) without rowid, strict;
create index definition_job_open on definition_job (definition, job) where open;
insert into definition_job (definition, job, open)
	select lane.definition, job.id, not exists (select 1 from done where done.seq = job.seq)
	from job cross join lane on lane.id = job.lane where lane.definition <> '';

-- What became of each tick. Run is the job that it made, or under an open circuit the run that tells so.
create table tick (
	definition text    not null,
	tick_at    integer not null,
	tenant     blob    not null,
	outcome    text    not null,
	reason     text    not null,
	run        blob,
	from_at    integer not null,
	to_at      integer not null,
	count      integer not null,
	primary key (definition, tick_at)
) without rowid, strict;
create index tick_at on tick (tick_at);
create index tick_run on tick (run) where outcome = 'circuitOpen';
create index tick_run_definition on tick (definition, run) where outcome = 'circuitOpen';
create index tick_run_tenant on tick (tenant, run) where outcome = 'circuitOpen';

-- Circuits about which there is something to remember.
create table circuit (
	definition text    not null primary key,
	tenant     blob    not null,
	state      text    not null,
	failures   integer not null,
	opened_at  integer not null,
	retry_at   integer not null,
	trial      blob
) without rowid, strict;
create index circuit_tenant on circuit (tenant, definition);
create index circuit_open on circuit (definition) where state in ('open', 'halfOpen');

-- What was set for a tenant (class '') or one of its classes.
create table policy (
	tenant blob    not null,
	class  text    not null,
	weight integer not null,
	cap    integer not null,
	paused integer not null,
	primary key (tenant, class)
) without rowid, strict;

create table handler (
	id         text    not null primary key,
	updated_at integer not null,
	schema     blob    not null
) strict;

create table alert (
	id         blob    not null primary key,
	kind       text    not null,
	subject    text    not null,
	tenant     blob    not null,
	message    text    not null,
	raised_at  integer not null,
	cleared_at integer not null
) without rowid, strict;
create unique index alert_subject on alert (kind, subject) where cleared_at = 0;
create index alert_open on alert (id) where cleared_at = 0;
create index alert_tenant on alert (tenant, id);
create index alert_cleared on alert (cleared_at) where cleared_at > 0;

create table audit (
	id       blob    not null primary key,
	at       integer not null,
	actor    text    not null,
	action   text    not null,
	object   text    not null,
	trace_id text    not null,
	before   blob,
	after    blob
) strict;
create index audit_at on audit (at);
create index audit_actor on audit (actor, id);
create index audit_object on audit (object, id);
