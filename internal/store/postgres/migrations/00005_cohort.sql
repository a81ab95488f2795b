-- Jobs that come into the queue together share a row, which never changes, and another with a bit for each that is still queued, the first the
-- lowest. Their seqs follow each other. queue keeps the others: those that came alone, that waited for their time, that come back.
--
-- +goose Up

set local lock_timeout = '5s';

create table cohort (
	first        bigint   primary key,
	queued_at    bigint   not null,
	job          uuid[]   not null,
	lane         bigint[] not null,
	max_attempts bigint[] not null
) with (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
	autovacuum_analyze_scale_factor = 0.2, autovacuum_analyze_threshold = 5000);

create table cohort_left (
	first bigint primary key,
	jobs  bigint not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
	autovacuum_analyze_scale_factor = 0.2, autovacuum_analyze_threshold = 5000);
create index cohort_spent on cohort_left (jobs) where jobs = 0;
