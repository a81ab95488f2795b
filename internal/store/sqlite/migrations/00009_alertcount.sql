-- An alert says how many jobs or ticks it is about.
--
-- +goose Up

alter table alert add column count integer not null default 1;
