-- A run that was refused at the grant, for a payload that breaks its schema, has the job's id as last_error_ref: no
-- lease names its error. kernel_job_run is otherwise that of 00002. Takes milliseconds, whatever the number of jobs.
--
-- +goose Up

set local lock_timeout = '5s';

-- Each branch has one status and finds its rows by an index: by tenant, and by job_id, which is a plain job's own id.
-- Of a definition with very many runs the newest are found by an index if the query also bounds started_at.
create or replace view kernel_job_run
	(run_id, job_id, tenant_id, status, attempts, started_at, ended_at, trace_id, last_error_ref) as
	select d.job, d.definition, d.tenant, 'SUCCESS', d.attempt,
		to_timestamp(d.started_at::float8 / 1000),
		to_timestamp(d.ended_at::float8 / 1000),
		(select case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end
			from job j where j.id = d.job),
		(select lease::text from attempt where job = d.job and outcome in ('failed', 'expired')
			order by fence desc limit 1)
		from done d where d.state = 'completed' and d.definition is not null
	union all
	select d.job, j.id::text collate "C", d.tenant, 'SUCCESS', d.attempt,
		to_timestamp(d.started_at::float8 / 1000),
		to_timestamp(d.ended_at::float8 / 1000),
		case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end,
		(select lease::text from attempt where job = d.job and outcome in ('failed', 'expired')
			order by fence desc limit 1)
		from job j join done d on d.seq = j.seq and d.job = j.id where d.state = 'completed' and d.definition is null
	union all
	select d.job, d.definition, d.tenant, 'FAILED', d.attempt,
		to_timestamp(d.started_at::float8 / 1000),
		to_timestamp(d.ended_at::float8 / 1000),
		(select case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end
			from job j where j.id = d.job),
		case when d.outcome in ('failed', 'expired') then coalesce(d.lease, d.job)::text else
			(select lease::text from attempt where job = d.job and outcome in ('failed', 'expired')
				order by fence desc limit 1) end
		from done d where d.state <> 'completed' and d.started_at > 0 and d.definition is not null
	union all
	select d.job, j.id::text collate "C", d.tenant, 'FAILED', d.attempt,
		to_timestamp(d.started_at::float8 / 1000),
		to_timestamp(d.ended_at::float8 / 1000),
		case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end,
		case when d.outcome in ('failed', 'expired') then coalesce(d.lease, d.job)::text else
			(select lease::text from attempt where job = d.job and outcome in ('failed', 'expired')
				order by fence desc limit 1) end
		from job j join done d on d.seq = j.seq and d.job = j.id
			where d.state <> 'completed' and d.started_at > 0 and d.definition is null
	union all
	select l.job, l.definition, l.tenant, 'CLAIMED', l.attempt,
		to_timestamp(coalesce((select granted_at from attempt where job = l.job order by fence limit 1),
			l.issued_at)::float8 / 1000),
		null, (select case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end
			from job j where j.id = l.job),
		(select lease::text from attempt where job = l.job and outcome in ('failed', 'expired')
			order by fence desc limit 1)
		from lease l where l.first_beat_at = 0 and l.definition is not null
	union all
	select l.job, j.id::text collate "C", l.tenant, 'CLAIMED', l.attempt,
		to_timestamp(coalesce((select granted_at from attempt where job = l.job order by fence limit 1),
			l.issued_at)::float8 / 1000),
		null, case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end,
		(select lease::text from attempt where job = l.job and outcome in ('failed', 'expired')
			order by fence desc limit 1)
		from job j join lease l on l.seq = j.seq and l.job = j.id where l.first_beat_at = 0 and l.definition is null
	union all
	select l.job, l.definition, l.tenant, 'RUNNING', l.attempt,
		to_timestamp(coalesce((select granted_at from attempt where job = l.job order by fence limit 1),
			l.issued_at)::float8 / 1000),
		null, (select case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end
			from job j where j.id = l.job),
		(select lease::text from attempt where job = l.job and outcome in ('failed', 'expired')
			order by fence desc limit 1)
		from lease l where l.first_beat_at <> 0 and l.definition is not null
	union all
	select l.job, j.id::text collate "C", l.tenant, 'RUNNING', l.attempt,
		to_timestamp(coalesce((select granted_at from attempt where job = l.job order by fence limit 1),
			l.issued_at)::float8 / 1000),
		null, case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end,
		(select lease::text from attempt where job = l.job and outcome in ('failed', 'expired')
			order by fence desc limit 1)
		from job j join lease l on l.seq = j.seq and l.job = j.id where l.first_beat_at <> 0 and l.definition is null
	union all
	select w.job, w.definition, w.tenant, 'RETRYING', w.attempt,
		to_timestamp(coalesce((select granted_at from attempt where job = w.job order by fence limit 1),
			w.queued_at)::float8 / 1000),
		null, (select case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end
			from job j where j.id = w.job),
		(select lease::text from attempt where job = w.job and outcome in ('failed', 'expired')
			order by fence desc limit 1)
		from delayed w where w.fence > 0 and w.definition is not null
	union all
	select w.job, j.id::text collate "C", w.tenant, 'RETRYING', w.attempt,
		to_timestamp(coalesce((select granted_at from attempt where job = w.job order by fence limit 1),
			w.queued_at)::float8 / 1000),
		null, case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end,
		(select lease::text from attempt where job = w.job and outcome in ('failed', 'expired')
			order by fence desc limit 1)
		from job j join delayed w on w.seq = j.seq and w.job = j.id where w.fence > 0 and w.definition is null
	union all
	select q.job, q.definition, q.tenant, 'RETRYING', q.attempt,
		to_timestamp(coalesce((select granted_at from attempt where job = q.job order by fence limit 1),
			q.queued_at)::float8 / 1000),
		null, (select case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end
			from job j where j.id = q.job),
		(select lease::text from attempt where job = q.job and outcome in ('failed', 'expired')
			order by fence desc limit 1)
		from queue q where q.fence > 0 and q.definition is not null
	union all
	select q.job, j.id::text collate "C", q.tenant, 'RETRYING', q.attempt,
		to_timestamp(coalesce((select granted_at from attempt where job = q.job order by fence limit 1),
			q.queued_at)::float8 / 1000),
		null, case j.trace_id when '' then encode(uuid_send(j.id), 'hex') else j.trace_id end,
		(select lease::text from attempt where job = q.job and outcome in ('failed', 'expired')
			order by fence desc limit 1)
		from job j join queue q on q.seq = j.seq and q.job = j.id where q.fence > 0 and q.definition is null
	union all
	select t.run, t.definition, t.tenant, 'CIRCUIT_OPEN', 0,
	to_timestamp(t.tick_at::float8 / 1000), to_timestamp(t.tick_at::float8 / 1000),
		encode(uuid_send(t.run), 'hex'), null
		from tick t where t.outcome = 'circuitOpen';

insert into setting (name, value) values ('schema', '22 16'::bytea)
	on conflict (name) do update set value = excluded.value;
