-- A lane that no job refers to is put on notice, and removed if nobody has registered it anew by the next look.
--
-- +goose Up

alter table lane add column notice integer not null default 0;
