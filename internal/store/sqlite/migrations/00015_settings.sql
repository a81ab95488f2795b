-- Tenants and classes have a name for people. A definition knows whether its owner set timeoutSeconds: of those
-- stored before, the default is taken for unset. Takes milliseconds for 10,000 definitions.
--
-- +goose Up

alter table policy add column name text not null default '';
alter table definition add column timeout_set integer not null default 0;

update definition set timeout_set = 1 where timeout_ms <= 3600000 and timeout_ms <> 300000;

replace into setting (name, value) values ('schema', cast('15 10' as blob));
