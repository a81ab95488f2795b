-- A job may ask a question and wait for its answer. The question stands beside what the job last reported; the few jobs
-- that wait have an index, for which writers of delayed wait as long as one scan of that table takes. Messages to a job
-- are kept until its worker has seen them; report counts them. No row is rewritten.
--
-- +goose Up

set local lock_timeout = '5s';

alter table report
	add column question bytea,
	add column sent     bigint not null default 0,
	add column seen     bigint not null default 0;
create index delayed_waiting on delayed (seq) where state = 'waiting';

create table message (
	job     uuid   not null,
	seq     bigint not null,
	sent_at bigint not null,
	body    text   not null,
	sent_by text   not null,
	primary key (job, seq)
);
