-- A job has a journal: entries that its attempts append, numbered from 1 without gaps. bytes is the sum of what the
-- entries count, up to and with this one. A lease notes the size of the journal once it has appended to it. The table is
-- new and no row is rewritten, so a million jobs take milliseconds.
--
-- +goose Up

set local lock_timeout = '5s';

create table journal (
	job   uuid    not null,
	n     bigint  not null,
	at    bigint  not null,
	fence bigint  not null,
	bytes bigint  not null,
	key   text    not null collate "C",
	kind  text    not null,
	data  bytea   not null,
	primary key (job, n),
	unique (job, key)
);

alter table lease
	add column journal_entries integer not null default 0,
	add column journal_bytes   bigint  not null default 0;
alter table report add column journal_entries integer;

-- Programs that know version 16 may go on: they leave journals alone.
insert into setting (name, value) values ('schema', '18 16')
	on conflict (name) do update set value = excluded.value;
