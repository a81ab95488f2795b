-- A job may ask a question and wait for its answer. The question stands beside what the job last reported; the few jobs
-- that wait have an index. Adds a column without a default: no row is rewritten.
--
-- +goose Up

alter table report add column question blob;
create index delayed_waiting on delayed (seq) where state = 'waiting';
