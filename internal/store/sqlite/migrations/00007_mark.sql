-- How far a job had come at its last release tells whether it has moved since: only releases without progress in
-- between count towards jobs.max_interruptions. Adds columns without a default: no row is rewritten, so a million jobs
-- take milliseconds.
--
-- +goose Up

alter table report add column highest real;
alter table report add column mark_progress real;
alter table report add column mark_checkpoint blob;
