-- A lease counts how often its command was found alive after a restart: each time is an entry of the job's record. The
-- table holds live leases only: a hundred thousand take less than a second.
--
-- +goose Up

set local lock_timeout = '5s';

alter table lease alter column reattached type bigint using reattached::int;
