-- A message may have a key, by which a repeated one is known. Messages with a key are kept for a while after they were
-- seen. Takes no time: no row is rewritten.
--
-- +goose Up

alter table message add column key text;
alter table message add column seen integer not null default 0;
create unique index message_key on message (job, key) where key is not null;

replace into setting (name, value) values ('schema', cast('14 10' as blob));
