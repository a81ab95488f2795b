-- A message may have a key, by which a repeated one is known. Messages with a key are kept for a while after they were
-- seen. No row is rewritten; writers of message wait as long as one scan of that small table takes.
--
-- +goose Up

set local lock_timeout = '5s';

alter table message
	add column key  text,
	add column seen boolean not null default false;
create unique index message_key on message (job, key) where key is not null;

insert into setting (name, value) values ('schema', '20 16'::bytea)
	on conflict (name) do update set value = excluded.value;
