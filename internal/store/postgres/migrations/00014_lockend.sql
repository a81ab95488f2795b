-- A lease whose last beat lies more than two seconds ahead was beaten before the clock stepped back (rules.Effective).
--
-- +goose Up

set local lock_timeout = '5s';

create or replace view kernel_job_lock (lock_key, tenant_id, locked_by, locked_until, run_id) as
	select l.lock_key, l.tenant, l.worker, to_timestamp(greatest(
		case when l.beat_at > floor(extract(epoch from clock_timestamp()) * 1000) + 2000 then 0 else l.expires_at end,
		s.since + l.ttl_ms, l.watch_until)::float8 / 1000), l.job
	from lease l cross join serving s where l.lock_key is not null;
