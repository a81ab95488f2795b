-- An alert says how many jobs or ticks it is about.
--
-- +goose Up

set local lock_timeout = '5s';

alter table alert add column count bigint not null default 1;
