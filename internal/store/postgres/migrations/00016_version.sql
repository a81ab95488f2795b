-- A definition names the version of the manifest that stored it last. Takes no time: no row is rewritten.
--
-- +goose Up

set local lock_timeout = '5s';

alter table definition add column version text not null default '';
