-- A lane that no job refers to is put on notice, and removed if nobody has registered it anew by the next look.
--
-- +goose Up

set local lock_timeout = '5s';

alter table lane add column notice bigint not null default 0;
