-- latest is the latest that the clock of the database ever said. It may have been set back since; fences were not.
-- The table has one row: it takes no time.
--
-- +goose Up

set local lock_timeout = '5s';

alter table serving add column latest bigint not null default 0;

insert into setting (name, value) values ('schema', '23 16'::bytea)
	on conflict (name) do update set value = excluded.value;
