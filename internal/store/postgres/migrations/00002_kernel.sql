-- The kernel: definitions and what belongs to them, and the relations in which others read all of it. Names that people give are
-- compared byte by byte, so that every node and the indexes agree on their order.
--
-- +goose Up

set local lock_timeout = '5s';

-- Which workers a node has seen, for the others.
alter table stream add column workers bytea, add column met_at bigint not null default 0;

-- What a manifest registers. The row is the clock of its ticks: who decides about them has it locked. due_at = 0 means that
-- there are none.
create table definition (
	id                 text    collate "C" primary key,
	tenant             uuid    not null,
	module             text    not null collate "C",
	schedule_type      text    not null,
	cron               text    not null,
	every_s            bigint  not null,
	zone               text    not null,
	handler            text    not null,
	lock_key           text    not null,
	class              text    not null,
	priority           integer not null,
	units              integer not null,
	max_attempts       integer not null,
	timeout_ms         bigint  not null,
	backoff_first_ms   bigint  not null,
	backoff_max_ms     bigint  not null,
	enabled            boolean not null,
	overlap            text    not null,
	catch_up           text    not null,
	catch_up_window_ms bigint  not null,
	jitter_ms          bigint  not null,
	failures           integer not null,
	cooldown_ms        bigint  not null,
	paused             boolean not null,
	anchor             bigint  not null,
	next_tick          bigint  not null,
	due_at             bigint  not null,
	created_at         bigint  not null,
	updated_at         bigint  not null,
	payload            bytea
);
create index definition_due on definition (due_at, id) where due_at > 0;
create index definition_tenant on definition (tenant, id);
create index definition_module on definition (module, id) where module <> '';
create index definition_held on definition (id) where paused or not enabled;

-- What became of ticks. run is the job that a tick made, or the run that tells of an open circuit.
create table tick (
	definition text   not null collate "C",
	tick_at    bigint not null,
	tenant     uuid   not null,
	outcome    text   not null,
	reason     text   not null,
	run        uuid,
	from_at    bigint not null,
	to_at      bigint not null,
	count      bigint not null,
	primary key (definition, tick_at)
);
create index tick_age on tick (tick_at);
create index tick_run on tick (run) where outcome = 'circuitOpen';
create index tick_definition_run on tick (definition, run) where outcome = 'circuitOpen';
create index tick_tenant_run on tick (tenant, run) where outcome = 'circuitOpen';
create index tick_started on tick (definition, to_timestamp(tick_at::float8 / 1000)) where outcome = 'circuitOpen';

-- Every definition has one row, made with it, so that it can be locked before anything has failed.
create table circuit (
	definition text    collate "C" primary key,
	tenant     uuid    not null,
	state      text    not null,
	failures   integer not null,
	opened_at  bigint  not null,
	retry_at   bigint  not null,
	trial      uuid
);
create index circuit_open on circuit (definition) where state not in ('', 'closed');
create index circuit_busy on circuit (definition) where state not in ('', 'closed') or failures <> 0;

-- What was set for tenants (class '') and their classes.
create table policy (
	tenant uuid    not null,
	class  text    not null collate "C",
	weight integer not null,
	cap    integer not null,
	paused boolean not null,
	primary key (tenant, class)
);

create table handler (
	id         text   collate "C" primary key,
	schema     bytea  not null,
	updated_at bigint not null
);

-- alert_open: what is wrong is said once.
create table alert (
	id         uuid   primary key,
	kind       text   not null,
	subject    text   not null,
	tenant     uuid   not null,
	message    text   not null,
	raised_at  bigint not null,
	cleared_at bigint not null
);
create unique index alert_open on alert (kind, subject) where cleared_at = 0;
create index alert_raised on alert (id) where cleared_at = 0;
create index alert_tenant on alert (tenant, id);
create index alert_age on alert (cleared_at) where cleared_at > 0;

create table audit (
	id       uuid   primary key,
	at       bigint not null,
	actor    text   not null,
	action   text   not null,
	object   text   not null,
	trace_id text   not null,
	before   bytea,
	after    bytea
);
create index audit_age on audit (at);
create index audit_actor on audit (actor, id);
create index audit_object on audit (object, id);

-- The jobs of definitions, from their insert to their purge; open until they end. Plain jobs have no row here.
create table definition_job (
	definition text    not null collate "C",
	job        uuid    not null,
	open       boolean not null,
	primary key (definition, job)
);
create index definition_job_open on definition_job (definition, job) where open;

-- Whose a job is, and of which definition (null for a plain job), in every place that its run is read from; in the queue only once
-- it was granted. started_at is the first grant (0 = never).
alter table queue add column tenant uuid, add column definition text collate "C";
alter table delayed add column tenant uuid, add column definition text collate "C";
alter table lease add column definition text collate "C";
alter table done add column tenant uuid, add column definition text collate "C", add column started_at bigint not null default 0;

insert into definition_job (definition, job, open)
	select n.definition, j.id, not exists (select 1 from done where seq = j.seq and job = j.id)
	from job j join lane n on n.id = j.lane where n.definition <> '';
update queue q set tenant = n.tenant, definition = nullif(n.definition, '') from lane n where n.id = q.lane and q.fence > 0;
update delayed w set tenant = n.tenant, definition = nullif(n.definition, '') from lane n where n.id = w.lane and w.fence > 0;
update lease l set definition = n.definition from lane n where n.id = l.lane and n.definition <> '';
update done d set tenant = n.tenant, definition = nullif(n.definition, ''), started_at = coalesce(
		(select granted_at from attempt where job = d.job order by fence limit 1), case when d.lease is null then 0 else d.granted_at end)
	from lane n where n.id = d.lane;

-- A plain job pays for three of these: job_text, lease_tenant and done_tenant. The others are for jobs of definitions, for failures
-- and retries, and for trace ids that were given: one that is made up from the job's id is stored as ''.
create index job_text on job ((id::text collate "C"));
create index job_trace on job (trace_id, id) where trace_id <> '';
create index lease_tenant on lease (tenant);
create index lease_definition on lease (definition) where definition is not null;
create index done_tenant on done (tenant, definition) where state = 'completed';
create index done_failed on done (tenant) where state <> 'completed' and started_at > 0;
create index done_started on done (definition, to_timestamp(started_at::float8 / 1000))
	where state = 'completed' and definition is not null;
create index done_failed_started on done (definition, to_timestamp(started_at::float8 / 1000))
	where state <> 'completed' and started_at > 0 and definition is not null;
create index queue_again on queue (seq) where fence > 0;
create index queue_again_tenant on queue (tenant) where fence > 0;
create index queue_again_definition on queue (definition) where fence > 0 and definition is not null;
create index delayed_again on delayed (seq) where fence > 0;
create index delayed_again_tenant on delayed (tenant) where fence > 0;
create index delayed_again_definition on delayed (definition) where fence > 0 and definition is not null;

-- The relations that others read. They are views, and so true at every commit. Times are written as expressions of which there is
-- an index.

create view kernel_job_definition (job_id, tenant_id, schedule_jsonb, handler_id, lock_key, max_attempts, timeout_seconds, fairness_class,
	is_enabled, created_at, updated_at, paused, module_id, next_tick_at) as
	select id, tenant, case schedule_type when 'cron' then jsonb_build_object('type', schedule_type, 'cron', cron)
		else jsonb_build_object('type', schedule_type, 'seconds', every_s) end,
		handler, lock_key, max_attempts, (timeout_ms / 1000)::integer, class, enabled, to_timestamp(created_at::float8 / 1000),
		to_timestamp(updated_at::float8 / 1000), paused, nullif(module, ''), to_timestamp(nullif(next_tick, 0)::float8 / 1000)
	from definition;

-- locked_until is rules.Effective.
create view kernel_job_lock (lock_key, tenant_id, locked_by, locked_until, run_id) as
	select l.lock_key, l.tenant, l.worker, to_timestamp(greatest(
		case when l.beat_at > floor(extract(epoch from clock_timestamp()) * 1000) + 1000 then 0 else l.expires_at end,
		s.since + l.ttl_ms, l.watch_until)::float8 / 1000), l.job
	from lease l cross join serving s where l.lock_key is not null;

-- Each branch has one status and finds its rows by an index: by tenant, and by job_id, which is a plain job's own id. Of a definition
-- with very many runs the newest are found by an index if the query also bounds started_at.
create view kernel_job_run (run_id, job_id, tenant_id, status, attempts, started_at, ended_at, trace_id, last_error_ref) as
	select d.job, d.definition, d.tenant, 'SUCCESS', d.attempt,
		to_timestamp(d.started_at::float8 / 1000),
		to_timestamp(d.ended_at::float8 / 1000), (select case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end from job j where j.id = d.job),
		(select lease::text from attempt where job = d.job and outcome in ('failed', 'expired') order by fence desc limit 1)
		from done d where d.state = 'completed' and d.definition is not null
	union all
	select d.job, j.id::text collate "C", d.tenant, 'SUCCESS', d.attempt,
		to_timestamp(d.started_at::float8 / 1000),
		to_timestamp(d.ended_at::float8 / 1000), case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end,
		(select lease::text from attempt where job = d.job and outcome in ('failed', 'expired') order by fence desc limit 1)
		from job j join done d on d.seq = j.seq and d.job = j.id where d.state = 'completed' and d.definition is null
	union all
	select d.job, d.definition, d.tenant, 'FAILED', d.attempt,
		to_timestamp(d.started_at::float8 / 1000),
		to_timestamp(d.ended_at::float8 / 1000), (select case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end from job j where j.id = d.job),
		case when d.outcome in ('failed', 'expired') then d.lease::text else
			(select lease::text from attempt where job = d.job and outcome in ('failed', 'expired') order by fence desc limit 1) end
		from done d where d.state <> 'completed' and d.started_at > 0 and d.definition is not null
	union all
	select d.job, j.id::text collate "C", d.tenant, 'FAILED', d.attempt,
		to_timestamp(d.started_at::float8 / 1000),
		to_timestamp(d.ended_at::float8 / 1000), case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end,
		case when d.outcome in ('failed', 'expired') then d.lease::text else
			(select lease::text from attempt where job = d.job and outcome in ('failed', 'expired') order by fence desc limit 1) end
		from job j join done d on d.seq = j.seq and d.job = j.id where d.state <> 'completed' and d.started_at > 0 and d.definition is null
	union all
	select l.job, l.definition, l.tenant, 'CLAIMED', l.attempt,
		to_timestamp(coalesce((select granted_at from attempt where job = l.job order by fence limit 1), l.issued_at)::float8 / 1000),
		null, (select case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end from job j where j.id = l.job),
		(select lease::text from attempt where job = l.job and outcome in ('failed', 'expired') order by fence desc limit 1)
		from lease l where l.first_beat_at = 0 and l.definition is not null
	union all
	select l.job, j.id::text collate "C", l.tenant, 'CLAIMED', l.attempt,
		to_timestamp(coalesce((select granted_at from attempt where job = l.job order by fence limit 1), l.issued_at)::float8 / 1000),
		null, case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end,
		(select lease::text from attempt where job = l.job and outcome in ('failed', 'expired') order by fence desc limit 1)
		from job j join lease l on l.seq = j.seq and l.job = j.id where l.first_beat_at = 0 and l.definition is null
	union all
	select l.job, l.definition, l.tenant, 'RUNNING', l.attempt,
		to_timestamp(coalesce((select granted_at from attempt where job = l.job order by fence limit 1), l.issued_at)::float8 / 1000),
		null, (select case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end from job j where j.id = l.job),
		(select lease::text from attempt where job = l.job and outcome in ('failed', 'expired') order by fence desc limit 1)
		from lease l where l.first_beat_at <> 0 and l.definition is not null
	union all
	select l.job, j.id::text collate "C", l.tenant, 'RUNNING', l.attempt,
		to_timestamp(coalesce((select granted_at from attempt where job = l.job order by fence limit 1), l.issued_at)::float8 / 1000),
		null, case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end,
		(select lease::text from attempt where job = l.job and outcome in ('failed', 'expired') order by fence desc limit 1)
		from job j join lease l on l.seq = j.seq and l.job = j.id where l.first_beat_at <> 0 and l.definition is null
	union all
	select w.job, w.definition, w.tenant, 'RETRYING', w.attempt,
		to_timestamp(coalesce((select granted_at from attempt where job = w.job order by fence limit 1), w.queued_at)::float8 / 1000),
		null, (select case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end from job j where j.id = w.job),
		(select lease::text from attempt where job = w.job and outcome in ('failed', 'expired') order by fence desc limit 1)
		from delayed w where w.fence > 0 and w.definition is not null
	union all
	select w.job, j.id::text collate "C", w.tenant, 'RETRYING', w.attempt,
		to_timestamp(coalesce((select granted_at from attempt where job = w.job order by fence limit 1), w.queued_at)::float8 / 1000),
		null, case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end,
		(select lease::text from attempt where job = w.job and outcome in ('failed', 'expired') order by fence desc limit 1)
		from job j join delayed w on w.seq = j.seq and w.job = j.id where w.fence > 0 and w.definition is null
	union all
	select q.job, q.definition, q.tenant, 'RETRYING', q.attempt,
		to_timestamp(coalesce((select granted_at from attempt where job = q.job order by fence limit 1), q.queued_at)::float8 / 1000),
		null, (select case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end from job j where j.id = q.job),
		(select lease::text from attempt where job = q.job and outcome in ('failed', 'expired') order by fence desc limit 1)
		from queue q where q.fence > 0 and q.definition is not null
	union all
	select q.job, j.id::text collate "C", q.tenant, 'RETRYING', q.attempt,
		to_timestamp(coalesce((select granted_at from attempt where job = q.job order by fence limit 1), q.queued_at)::float8 / 1000),
		null, case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end,
		(select lease::text from attempt where job = q.job and outcome in ('failed', 'expired') order by fence desc limit 1)
		from job j join queue q on q.seq = j.seq and q.job = j.id where q.fence > 0 and q.definition is null
	union all
	select t.run, t.definition, t.tenant, 'CIRCUIT_OPEN', 0, to_timestamp(t.tick_at::float8 / 1000), to_timestamp(t.tick_at::float8 / 1000),
		encode(uuid_send(t.run), 'hex'), null
		from tick t where t.outcome = 'circuitOpen';
