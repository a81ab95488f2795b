-- A job has a journal: entries that its attempts append, numbered from 1 without gaps. bytes is the sum of what the
-- entries count, up to and with this one. A lease notes the size of the journal once it has appended to it. The table is
-- new and no row is rewritten, so a million jobs take milliseconds.
--
-- +goose Up

create table journal (
	id    integer primary key,
	job   blob    not null,
	n     integer not null,
	key   text    not null,
	kind  text    not null,
	at    integer not null,
	fence integer not null,
	bytes integer not null,
	data  blob    not null,
	unique (job, n),
	unique (job, key)
) strict;

alter table beat add column journal_entries integer not null default 0;
alter table beat add column journal_bytes integer not null default 0;
alter table report add column journal_entries integer;

-- Programs that know version 10 may go on: they leave journals alone.
replace into setting (name, value) values ('schema', cast('12 10' as blob));
