-- How far a job had come at its last release tells whether it has moved since: only releases without progress in
-- between count towards jobs.max_interruptions. Adds columns without a default: no row is rewritten, so a million jobs
-- take milliseconds.
--
-- +goose Up

set local lock_timeout = '5s';

alter table report
	add column highest         double precision,
	add column mark_progress   double precision,
	add column mark_checkpoint bytea;
