-- A job may ask a question and wait for its answer. The question stands beside what the job last reported; the few jobs
-- that wait have an index, for which writers of delayed wait as long as one scan of that table takes. Adds a column
-- without a default: no row is rewritten.
--
-- +goose Up

set local lock_timeout = '5s';

alter table report add column question bytea;
create index delayed_waiting on delayed (seq) where state = 'waiting';
