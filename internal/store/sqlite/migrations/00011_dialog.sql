-- A job may ask a question and wait for its answer. The question stands beside what the job last reported; the few jobs
-- that wait have an index. Messages to a job are kept until its worker has seen them; report counts them. Takes no time:
-- no row is rewritten.
--
-- +goose Up

alter table report add column question blob;
alter table report add column sent integer not null default 0;
alter table report add column seen integer not null default 0;
create index delayed_waiting on delayed (seq) where state = 'waiting';

create table message (
	job     blob    not null,
	seq     integer not null,
	body    text    not null,
	sent_at integer not null,
	sent_by text    not null,
	primary key (job, seq)
) without rowid, strict;
