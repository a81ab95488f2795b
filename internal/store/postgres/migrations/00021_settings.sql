-- Tenants and classes have a name for people. A definition knows whether its owner set timeoutSeconds: of those
-- stored before, the default is taken for unset. Takes milliseconds for 10,000 definitions.
--
-- +goose Up

set local lock_timeout = '5s';

alter table policy add column name text not null default '';
alter table definition add column timeout_set boolean not null default false;

update definition set timeout_set = true where timeout_ms <= 3600000 and timeout_ms <> 300000;

insert into setting (name, value) values ('schema', '21 16'::bytea)
	on conflict (name) do update set value = excluded.value;
